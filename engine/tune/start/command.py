"""Starts a training as a command below a guardian, which ends all that the command started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...machine.device_lock import inherited_locks
from ..spec import CONFIG, TEMPLATE, FunctionSpec, TuneSpec
from .config_file import write_copy
from .environment import HOOK, HOOK_VARIABLE, environment_of, hook_settings
from .launch import BeginUnwatched, Place, Running, Watching

GUARDIAN = Path(__file__).resolve().parent / "guardian.py"


def begin_command(spec: TuneSpec | FunctionSpec, batch_size: int, watching: Watching, place: Place) -> Running:
    """Start the command of a spec, under a guardian."""
    hook = hook_settings(spec, batch_size, watching, place)
    path = os.pathsep.join((str(HOOK), *spec.python_path, *filter(None, [os.environ.get("PYTHONPATH")])))
    variables = watching.faster["environment"] if watching.faster else {}
    variables = watching.emulated.variables if watching.emulated else variables
    return _begin(spec, batch_size, place, {**variables, "PYTHONPATH": path, HOOK_VARIABLE: json.dumps(hook)})


def unwatched(spec: TuneSpec | FunctionSpec) -> BeginUnwatched | None:
    """Return what starts the command as its user would; None where only the watch sets its batch size, or ranks.

    None also for a script of our own, which is not to be told from its watch.
    """
    needs_the_watch = spec.batch not in (TEMPLATE, "env", CONFIG) or spec.emulated_ranks or spec.catalogue
    return None if needs_the_watch else partial(_begin, spec, own={})


def _begin(spec: TuneSpec | FunctionSpec, batch_size: int, place: Place, own: Mapping[str, str]) -> Running:
    write_copy(spec, batch_size, place.out)
    with place.log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-I", str(GUARDIAN), *spec.arguments(batch_size, str(place.out))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            env={**os.environ, **environment_of(spec.device, batch_size), **own},
            cwd=spec.directory,
            start_new_session=True,
            pass_fds=inherited_locks(),
        )
    return _Guarded(process)


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A command below its guardian."""

    process: subprocess.Popen[bytes]

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def end(self) -> int | None:
        """Have the guardian kill all that is left; the command's exit status where it had ended by itself."""
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        answer = process.stdout.read()
        process.stdout.close()
        process.wait()
        with suppress(ProcessLookupError):  # where the guardian itself was killed
            os.killpg(process.pid, signal.SIGKILL)
        return int(answer) if answer.strip() else None
