"""Starts public scripts without the product's hook: under the second meter, or alone beside a watched start."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engine.tune.spec import TuneSpec
from engine.tune.start.command import begin_command
from engine.tune.start.launch import Place, Watching

METER = Path(__file__).resolve().parent / "second_meter"
STEPS = 5
GRACE_SECONDS = 3.0
COMPARED = 5
COMPARED_SECONDS = 40.0
LOSS = re.compile(r"(?:loss|elbo|nll)\w*[^\d\n\r-]{0,12}(-?\d+\.\d+(?:e[-+]?\d+)?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Script:
    """One public script: where it is, how it is started, and what must come out."""

    name: str
    repository: str
    command: str
    limit_mib: int
    folder: str = ""
    expected: str = "exact"
    batch: str | None = None
    current: int = 16
    data: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    refused_because: str = ""

    def arguments(self, size: int | None = None, out: Path | None = None) -> list[str]:
        """Return the command; the size and the folder for its files left to the product where they are None."""
        parts = shlex.split(self.command)
        if size is not None:
            parts = [part.replace("{batch_size}", str(size)).replace("{out}", str(out)) for part in parts]
        return [sys.executable if part == "python" else part for part in parts]

    def variables(self) -> dict[str, str]:
        pairs = (each.partition("=") for each in self.environment)
        own = {name: value for name, _, value in pairs}
        return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": "", **own}


@cache
def library() -> Path:
    """Compile the part of the meter that is preloaded."""
    made = Path(tempfile.mkdtemp(prefix="second_meter")) / "allocations.so"
    compiler = ["cc", "-O2", "-shared", "-fPIC", "-o", str(made), str(METER / "allocations.c"), "-ldl", "-lpthread"]
    subprocess.run(compiler, check=True)
    return made


def metered_bytes(script: Script, folder: Path, size: int, seconds: float = 300.0) -> int | None:
    """Start a script under the second meter; the peak of its worst rank, None where it did not make its steps."""
    with tempfile.TemporaryDirectory() as notes:
        settings = {"folder": notes, "steps": STEPS, "loaders": size if script.batch == "dataloader" else None}
        more = {"SECOND_METER": json.dumps(settings), "LD_PRELOAD": str(library())}
        begin, until = _alone(script, folder, size, more, Path(notes)), time.monotonic() + seconds
        try:
            while time.monotonic() < until and begin.poll() is None:
                time.sleep(0.1)
                if found := _written(notes):
                    until = min(until, time.monotonic() + (GRACE_SECONDS if len(found) < found[0]["world"] else 0.0))
        finally:
            _end(begin)
        return max((each["peak_bytes"] for each in _written(notes)), default=None)


def _written(notes: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in Path(notes).glob("*.json")]


def _alone(script: Script, folder: Path, size: int, more: dict[str, str], notes: Path) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(filter(None, (str(METER), script.variables().get("PYTHONPATH"))))
    (notes / "out").mkdir(exist_ok=True)
    with (notes / "log").open("ab") as log:
        return subprocess.Popen(
            script.arguments(size, notes / "out"),
            cwd=folder,
            env={**script.variables(), "PYTHONPATH": path, **more},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def losses(log: Path) -> list[str]:
    """Return the losses that a script printed, in their order."""
    return LOSS.findall(log.read_text(errors="replace"))


def compared_losses(script: Script, folder: Path, size: int) -> tuple[int, bool | None]:
    """Return how many of its first losses were compared, alone and watched, and whether all are the same.

    None where it printed none in the time. Both starts have the same random numbers.
    """
    seeded = json.dumps({"loaders": size if script.batch == "dataloader" else None})
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        alone = _alone(script, folder, size, {"SECOND_METER": seeded}, Path(one))
        _wait_for_losses(Path(one) / "log", lambda: alone.poll() is not None)
        _end(alone)
        if not losses(Path(one) / "log"):
            return 0, None
        place = Place(Path(other) / "notes", Path(other) / "out", Path(other) / "log")
        place.notes.mkdir()
        place.out.mkdir()
        place.log.touch()
        spec = TuneSpec(
            tuple(script.arguments()), device="cpu", memory_limit_bytes=1 << 40, batch=script.batch or "template"
        )
        before, kept = Path.cwd(), dict(os.environ)
        os.environ |= {**script.variables(), "SECOND_METER": json.dumps({}), "PYTHONPATH": str(METER)}
        os.chdir(folder)
        try:
            watched = begin_command(spec, size, Watching(memory_steps=500, timed_steps=0), place)
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ |= kept
        try:
            _wait_for_losses(place.log, watched.has_ended)
        finally:
            watched.end()
        pairs = list(zip(losses(Path(one) / "log"), losses(place.log), strict=False))[:COMPARED]
        return len(pairs), all(a == b for a, b in pairs) if pairs else None


def _wait_for_losses(log: Path, has_ended: Any) -> None:
    until = time.monotonic() + COMPARED_SECONDS
    while time.monotonic() < until and not has_ended() and len(losses(log)) <= COMPARED:
        time.sleep(0.2)
