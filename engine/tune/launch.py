"""One start of a training: with the hook in its process, until enough was noted or it failed.

A command runs under a guardian, which ends all that the command started; `forked` has the starts that are forks of this
program.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Protocol

from ..errors import DeviceUnavailable
from ..machine.device_lock import inherited_lock
from ..machine.host import oom_kills
from ..machine.scratch import scratch_folder
from .evidence import Ended
from .reading import Reading
from .spec import VARIABLE, FunctionSpec, TuneSpec

HOOK = Path(__file__).resolve().parent / "hook"
HOOK_VARIABLE = "MEMORYMARK_HOOK"
GUARDIAN = Path(__file__).resolve().parent / "guardian.py"
LOOK_SECONDS = 0.05
GRACE_SECONDS = 0.5  # a rank that fails brings down the others: its file shows which was the first
LAST_BYTES, LAST_LINES = 4_000, 3
TRACKERS_OFF = {
    "WANDB_MODE": "disabled",
    "COMET_MODE": "DISABLED",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DISABLE_MLFLOW_INTEGRATION": "TRUE",
}
"""A start is no training that anybody wants to find in a tracker."""


@dataclass(frozen=True, slots=True)
class Watching:
    """How long a start is watched: steps whose memory is read, then steps that are timed."""

    memory_steps: int
    timed_steps: int = 6
    timed_seconds: float = 15.0
    whole_run: bool = False
    rows_folder: str | None = None
    """Where the starts of a whole run share which rows of the data are the largest."""
    look_through_seconds: float = 20.0
    """How long the first start of a whole run may look a data set through."""


@dataclass(frozen=True, slots=True)
class Place:
    """The files of one start: what the hook notes, what the training may write, its output."""

    notes: Path
    out: Path
    log: Path


class Running(Protocol):
    """What was started."""

    def has_ended(self) -> bool: ...
    def end(self) -> int | None:
        """End all of it; the exit status where it had ended by itself, negative for a signal."""


Begin = Callable[[int, Watching, Place], Running]
"""Starts a training with a batch size."""


def start(
    begin: Begin,
    batch_size: int,
    watching: Watching,
    *,
    seconds: float,
    on_tick: Callable[[], None] = lambda: None,
) -> tuple[list[Reading], Ended]:
    """Start the training once; what the hook noted, and how it ended. Nothing of it is left when this returns."""
    with scratch_folder() as folder:
        place = Place(Path(folder) / "notes", Path(folder) / "out", Path(folder) / "log")
        place.notes.mkdir()
        place.out.mkdir()
        place.log.touch()
        kills, began = oom_kills(), time.monotonic()
        running = begin(batch_size, watching, place)
        try:
            timed_out = _watch(running, place.notes, began + seconds, on_tick)
        finally:
            status = running.end()
        readings = _readings(place.notes)
        _reading.cache_clear()  # the events of a start are many, and no other start reads them
        ended = Ended(
            exit_status=status,
            timed_out_after_seconds=seconds if timed_out else None,
            kernel_killed=oom_kills() > kills and bool(status),  # a launcher turns its rank's SIGKILL into a 1
            last_lines=_last_lines(place.log),
            wall_seconds=time.monotonic() - began,
        )
        return readings, ended


def begin_command(spec: TuneSpec | FunctionSpec, batch_size: int, watching: Watching, place: Place) -> Running:
    """Start the command of a spec, under a guardian."""
    hook = hook_settings(spec, batch_size, watching, place)
    path = os.pathsep.join((str(HOOK), *spec.python_path, *filter(None, [os.environ.get("PYTHONPATH")])))
    own = {"PYTHONPATH": path, HOOK_VARIABLE: json.dumps(hook)}
    environment = {**os.environ, **environment_of(spec.device, batch_size), **own}
    with place.log.open("ab") as output:
        return _Guarded(_guarded(spec.arguments(batch_size, str(place.out)), environment, output, spec.directory))


def hook_settings(
    spec: TuneSpec | FunctionSpec, batch_size: int, watching: Watching, place: Place, threads: int | None = None
) -> dict[str, Any]:
    """Return what the hook must know. `threads`: how many a fork may compute with, where not as many as it likes."""
    return {
        "folder": str(place.notes),
        "batch": spec.batch,
        "batch_size": batch_size,
        "limit_bytes": spec.memory_limit_bytes,
        "threads": threads,
        **asdict(watching),
    }


def environment_of(device: str, batch_size: int) -> dict[str, str]:
    """Return what a start adds to the caller's own environment: the batch size, the device, and no tracker."""
    trackers = {name: value for name, value in TRACKERS_OFF.items() if name not in os.environ}
    devices = visible_devices(device, os.environ.get("CUDA_VISIBLE_DEVICES"))
    return {**trackers, VARIABLE: str(batch_size), **devices}


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


def _guarded(
    command: Sequence[str], environment: dict[str, str], output: IO[bytes], directory: str | None
) -> subprocess.Popen[bytes]:
    lock = inherited_lock()
    return subprocess.Popen(
        [sys.executable, "-I", str(GUARDIAN), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=output,
        env=environment,
        cwd=directory,
        start_new_session=True,
        pass_fds=[] if lock is None else [lock],
    )


def visible_devices(device: str, visible: str | None) -> dict[str, str]:
    """Return the environment in which a command sees no other device than the one to be measured.

    `visible` is the caller's own CUDA_VISIBLE_DEVICES, among which the device is counted. `auto` leaves the choice to
    the command.
    """
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return {"CUDA_VISIBLE_DEVICES": ""}
    if kind != "cuda" or not index:
        return {}
    names = visible.split(",") if visible else []
    if names and int(index) >= len(names):
        raise DeviceUnavailable(f"{device} is not there: CUDA_VISIBLE_DEVICES has {len(names)}")
    return {"CUDA_VISIBLE_DEVICES": names[int(index)].strip() if names else index}


def _watch(running: Running, notes: Path, until: float, on_tick: Callable[[], None]) -> bool:
    """Wait until every rank is done, one failed, or the training ended; true when the time was over first."""
    while time.monotonic() < until:
        has_ended = running.has_ended()
        readings = _readings(notes)
        done = [r for r in readings if r.is_done]
        if any(r.has_failed for r in readings):
            time.sleep(GRACE_SECONDS)
            return False
        if has_ended or (done and len(done) >= done[0].world_size):
            return False
        on_tick()
        time.sleep(LOOK_SECONDS)
    return True


def _readings(notes: Path) -> list[Reading]:
    """Return what was written to its end; a file is renamed into its place."""
    return [_reading(path, path.stat().st_mtime_ns) for path in sorted(notes.glob("*.json"))]


@lru_cache(maxsize=64)
def _reading(path: Path, _: int) -> Reading:
    return Reading(json.loads(path.read_text()))


def _last_lines(log: Path) -> str:
    """Return the last lines of the command's output, to be set behind a message."""
    with log.open("rb") as file:
        file.seek(max(log.stat().st_size - LAST_BYTES, 0))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return f"; its last lines: {' | '.join(lines[-LAST_LINES:])}" if lines else ""
