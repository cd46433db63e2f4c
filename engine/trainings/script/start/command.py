"""Starts a training as a command below a guardian, which ends all that the command started."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from ....machine.device_lock import inherited_locks
from ....machine.watch import waiting_policy
from ..notes.file_changes import WrittenFiles
from ..spec import FunctionSpec, TuneSpec
from .config_file import config_copy
from .environment import HOOK, HOOK_VARIABLE, environment_of, hook_settings, python_path
from .launch import Begin, Place, Running, Watching
from .protection import GUARDIAN, Protection, protection_of, recover

UNPROTECTED = Protection()
ENDING_SECONDS = 5.0
"""How long a killed process may take to be gone."""
_SEED, _SEED_OPTION = re.compile(r"(\bseed[= ])(\d{1,9})\b"), re.compile(r"--?([\w-]+[-_])?seed")


def begin_protected(
    spec: TuneSpec | FunctionSpec, files: WrittenFiles, *, may_overwrite: bool = False, outputs: str | None = None
) -> Begin:
    for left in recover():
        files.log(f"could not be put back after a start that was killed: {left}", "warning")
    protection = protection_of(spec, may_overwrite=may_overwrite, outputs=outputs)
    if not spec.catalogue:
        files.log(protection.describe(files.folder), "info")
        files.protection = protection.way
    return partial(begin_command, spec, protection=protection, variables_of_run=waiting_policy(spec.device))


def begin_command(
    spec: TuneSpec | FunctionSpec,
    batch_size: int,
    watching: Watching,
    place: Place,
    *,
    protection: Protection = UNPROTECTED,
    variables_of_run: Mapping[str, str] | None = None,
) -> Running:
    hook = hook_settings(spec, batch_size, watching, place)
    path = python_path(str(HOOK), *spec.python_path)
    variables = watching.faster["environment"] if watching.faster else {}
    variables = watching.emulated.variables if watching.emulated else variables
    variables = {**variables, "PYTHONPATH": path, HOOK_VARIABLE: json.dumps(hook)}
    variables = {**os.environ, **(variables_of_run or {}), **environment_of(spec.device, batch_size), **variables}
    settings = protection.settings(place.log.parent, batch_size, spec.directory or os.getcwd(), variables)
    settings["shared"] += [watching.rows_folder] if watching.rows_folder else []
    with ExitStack() as owned, place.log.open("ab") as output:
        copy = owned.enter_context(config_copy(spec, batch_size, place))
        arguments = with_seed(spec.arguments(batch_size, str(place.out), copy), watching.again)
        process = subprocess.Popen(
            [sys.executable, "-I", str(GUARDIAN), json.dumps(settings), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            env=variables,
            cwd=spec.directory,
            start_new_session=True,
            pass_fds=inherited_locks(),
        )
        return _Guarded(process, place, owned.pop_all())


def with_seed(parts: Sequence[str], more: int) -> list[str]:
    """Return a command with its seeds raised: a training that varies is given another one in each start.

    >>> with_seed(["train.py", "--seed", "1", "data.seed=7", "--max", "5"], 2)
    ['train.py', '--seed', '3', 'data.seed=9', '--max', '5']
    """
    raised = [_SEED.sub(lambda found: f"{found[1]}{int(found[2]) + more}", part) for part in parts]
    for number, (option, value) in enumerate(pairwise(parts), 1):
        if _SEED_OPTION.fullmatch(option) and value.isdecimal():
            raised[number] = str(int(value) + more)
    return raised


@dataclass(frozen=True, slots=True)
class _Guarded:
    process: subprocess.Popen[bytes]
    place: Place
    owned: ExitStack

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def end(self) -> int | None:
        """Have the guardian kill all that is left; the command's exit status where it had ended by itself."""
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        with self.owned:
            with suppress(BrokenPipeError):
                process.stdin.close()
            answer = process.stdout.read()
            process.stdout.close()
            process.wait()
            with suppress(ProcessLookupError):  # where the guardian itself was killed
                os.killpg(process.pid, signal.SIGKILL)
            if process.returncode < 0:
                _kill_those_of(self.place)
                recover()
        return int(answer) if answer.strip() else None


def _kill_those_of(place: Place) -> None:
    """Kill until none is left: one may start another meanwhile, and needs a moment to end."""
    until = time.monotonic() + ENDING_SECONDS
    while _are_killed(place) and time.monotonic() < until:
        time.sleep(0.01)


def _are_killed(place: Place) -> bool:
    """Kill all processes of a start. Returns whether there was any."""
    found = False
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.fsencode(place.notes) in (entry / "environ").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)
                found = True
    return found
