"""Keeps the files of a start's user as they are: by layers that take its changes, or by saved copies (`guard`)."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....errors import CommandUntunable, SpecError
from ....machine.cache_folder import cache_folder
from ..notes.file_changes import CHANGES, Way
from ..spec import FunctionSpec, TuneSpec

GUARDIAN = Path(__file__).resolve().parent / "guard" / "guardian.py"
SECONDS_TO_TRY = 60.0
FORCED_WAY = "MEMORYMARK_PROTECTION"
"""Environment variable with the one way to use, for who cannot have the other."""
CACHE_VARIABLES = (
    *("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "TRANSFORMERS_CACHE", "TORCH_HOME"),
    *("TORCHINDUCTOR_CACHE_DIR", "TRITON_HOME", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH", "NUMBA_CACHE_DIR"),
)
CACHE_FOLDERS = (".cache", ".triton", ".nv")
"""In the home folder; where these and the variables' folders are there, they may grow."""


@dataclass(frozen=True, slots=True)
class Protection:
    """How the files of a run's user are kept as they are, and where what starts write is copied."""

    way: Way = Way.NOTHING
    why_no_layers: str = ""
    outputs: Path | None = None

    def settings(self, folder: Path, batch_size: int, here: str, variables: Mapping[str, str]) -> dict[str, Any]:
        """Return what the guardian of a start must know; whose files lie in `folder` and that runs in `here`."""
        number = 1 + len(list(self.outputs.glob("start-*"))) if self.outputs else 0
        return {
            "protection": self.way,
            "scratch": str(folder / "layers"),
            "shared": [str(folder.resolve()), *shared_folders(here, variables)],
            "journals": str(journals_folder()),
            "changes": str(folder / CHANGES),
            "out": str(folder / "out"),
            "outputs": self.outputs and str(self.outputs / f"start-{number}-batch-{batch_size}"),
        }

    def describe(self, folder: str) -> str:
        if self.way is Way.LAYERS:
            text = "your files stay as they are: starts see them through a layer, and what they change there disappears"
        elif self.way is Way.SAVING:
            text = "your files stay as they are: each is saved before a start changes it, and put back after the start"
        else:
            allowed = f"layers are not possible: {self.why_no_layers}" if self.why_no_layers else "--may-overwrite"
            return f"each start writes, overwrites and removes files in {folder} as the training does ({allowed})"
        return f"{text}; " + (f"copies go to {self.outputs}" if self.outputs else "--keep-outputs FOLDER keeps copies")


def protection_of(
    spec: TuneSpec | FunctionSpec, *, may_overwrite: bool = False, outputs: str | None = None
) -> Protection:
    """Return the best way that this machine allows, as a process tries it. Raises CommandUntunable without one."""
    if may_overwrite and outputs is not None:
        raise SpecError("keep_outputs", "copies what would else disappear: leave out --may-overwrite")
    if may_overwrite or spec.catalogue:  # our own training writes nothing
        return Protection()
    folder = spec.directory or os.getcwd()
    if not os.path.isdir(folder):
        raise SpecError("directory", f"{folder} is no folder on this host")
    tried = _try(folder)
    is_forked = isinstance(spec, FunctionSpec) and spec.starting != "process"
    if is_forked and tried["way"] != Way.LAYERS:
        return Protection(why_no_layers=tried["why_no_layers"] or "they are not wanted")
    if tried["way"] == Way.NOTHING:
        raise CommandUntunable(
            "cannot_protect",
            f"files in {folder} cannot be protected from what the script does ({tried['why_no_layers']}). Run it in a "
            "copy of the folder, or have it write to {out}, and give --may-overwrite",
        )
    return Protection(Way(tried["way"]), tried["why_no_layers"], _outputs(outputs))


def recover() -> list[str]:
    """Put back what starts left whose guardian was killed, or whose machine failed; what could not be, in words."""
    if sys.platform != "linux":  # nothing is saved elsewhere
        return []
    from .guard import saved  # needs fcntl, which Windows has not

    return saved.recover(journals_folder())


def shared_folders(here: str, variables: Mapping[str, str]) -> list[str]:
    """Return the caches that a start may fill for good, and pipes, but no folder above `here`."""
    environment = {**os.environ, **variables}
    named = [environment[name] for name in CACHE_VARIABLES if environment.get(name)]
    named.append(environment.get("CUDA_MPS_PIPE_DIRECTORY") or "/tmp/nvidia-mps")  # noqa: S108 - the driver's
    home = [os.path.expanduser(f"~/{name}") for name in CACHE_FOLDERS]
    with suppress(KeyError, OSError):  # an account without a name
        named.append(f"{tempfile.gettempdir()}/torchinductor_{getpass.getuser()}")
    found = {Path(each).resolve() for each in [*named, *home] if os.path.isdir(each)}
    return sorted(str(each) for each in found if not Path(here).resolve().is_relative_to(each))


def journals_folder() -> Path:
    """Return where the journals of saved files lie: a start whose machine fails is undone by a later run."""
    folder = cache_folder() / "unfinished"
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.access(folder, os.W_OK | os.X_OK):
        return folder
    return Path(tempfile.gettempdir()) / f"memorymark-unfinished-{os.getuid()}"


def _outputs(outputs: str | None) -> Path | None:
    if outputs is None:
        return None
    folder = Path(outputs).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SpecError("keep_outputs", f"must be a new or an empty folder, and {outputs} is not")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _try(folder: str) -> dict[str, str]:
    if sys.platform != "linux":
        return {"way": Way.NOTHING, "why_no_layers": f"{sys.platform} has no namespaces"}
    forced = os.environ.get(FORCED_WAY)
    ways = [Way.LAYERS, Way.SAVING]
    if forced and forced not in ways:
        raise SpecError(FORCED_WAY, f"must be one of {', '.join(ways)}")
    ways = [Way(forced)] if forced else ways
    command = [sys.executable, "-I", str(GUARDIAN), json.dumps({"ways": ways})]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS_TO_TRY, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found
