"""Starts public scripts without the product's hook: under the second meter, or alone beside a watched start."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from engine.trainings.script.spec import TuneSpec
from engine.trainings.script.start.command import begin_command
from engine.trainings.script.start.launch import Place, Watching, start

METER = Path(__file__).resolve().parent / "second_meter"
STEPS, LEAST_STEPS, STEPS_SECONDS, TO_THE_END = 200, 5, 60.0, -1
"""The truth is the peak of 200 steps, of fewer where those of a minute are."""
GRACE_SECONDS = 3.0
WATCHED_STEPS = 20
NEVER = 1_000_000
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
    two_epochs: str = ""
    whole_run_mib: int | None = None

    def ending(self) -> Script:
        """Return the script with what ends it after two epochs, or after a few steps where it knows no epochs."""
        command = f"{self.command} {self.two_epochs}".strip()
        return replace(self, command=command, limit_mib=self.whole_run_mib or self.limit_mib)

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


def metered(
    script: Script, folder: Path, size: int, steps: int = STEPS, seconds: float = 300.0
) -> tuple[int | None, int]:
    """Start a script under the second meter; the peak of its worst rank and its steps, None where it made too few."""
    with tempfile.TemporaryDirectory() as notes:
        begin, until = _metered(script, folder, size, Path(notes), steps), time.monotonic() + seconds
        try:
            while time.monotonic() < until and begin.poll() is None:
                time.sleep(0.1)
                if found := _written(notes):
                    until = min(until, time.monotonic() + (GRACE_SECONDS if len(found) < found[0]["world"] else 0.0))
        finally:
            _end(begin)
        worst = max(_written(notes), key=lambda each: each["peak_bytes"], default=None)
        return (worst["peak_bytes"], worst["steps"]) if worst else (None, 0)


def own_meter_bytes(script: Script, folder: Path, size: int, seconds: float = 300.0) -> int | None:
    """Start a script under the product's own meter for as many steps; the peak of its worst rank."""
    watching = Watching(STEPS, timed_steps=0, least_steps=LEAST_STEPS, memory_seconds=STEPS_SECONDS)
    with in_folder(folder, _with_meter(script)):
        readings, _ = start(partial(begin_command, _spec(script)), size, watching, seconds=seconds)
    return max((memory.peak_bytes for each in readings if (memory := each.memory()) is not None), default=None)


def whole_run_bytes(script: Script, folder: Path, size: int, seconds: float) -> tuple[int | None, int | None, str]:
    """Run a script to its own end under the second meter; exit status (None: not over in time), peak, last words."""
    with tempfile.TemporaryDirectory() as notes:
        begin = _metered(script, folder, size, Path(notes), TO_THE_END)
        with suppress(subprocess.TimeoutExpired):
            begin.wait(seconds)
        status = begin.poll()
        _end(begin)
        peak = max((each["peak_bytes"] for each in _written(notes)), default=None)
        return status, peak, (Path(notes) / "log").read_text(errors="replace")[-500:]


def _metered(script: Script, folder: Path, size: int, notes: Path, steps: int) -> subprocess.Popen[bytes]:
    settings = {"folder": str(notes), "steps": steps, "least_steps": LEAST_STEPS, "seconds": STEPS_SECONDS}
    settings |= {"loaders": size if script.batch == "dataloader" else None}
    return _alone(script, folder, size, {"SECOND_METER": json.dumps(settings), "LD_PRELOAD": str(library())}, notes)


def _written(notes: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in Path(notes).glob("*.json")]


def _alone(script: Script, folder: Path, size: int, more: dict[str, str], notes: Path) -> subprocess.Popen[bytes]:
    (notes / "out").mkdir(exist_ok=True)
    with (notes / "log").open("ab") as log:
        return subprocess.Popen(
            script.arguments(size, notes / "out"),
            cwd=folder,
            env=_with_meter(script, **more),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@dataclass(frozen=True, slots=True)
class Run:
    """What one start showed: the losses of its backward passes, bit by bit, those it printed, and its exit status."""

    losses: dict[int, list[str]]
    """By the place among the processes, in the order of their first loss."""
    printed: list[str]
    exit_status: int | None
    """None where it was not over in the time."""

    def count(self) -> int:
        return sum(map(len, self.losses.values()))


def alone_run(script: Script, folder: Path, size: int, seconds: float, most: int = NEVER) -> Run:
    """Start a script by itself with fixed random numbers, until it ends, has `most` losses, or the time is over."""
    with tempfile.TemporaryDirectory() as notes:
        place = Path(notes)
        settings = {"losses": notes, "loaders": size if script.batch == "dataloader" else None}
        process = _alone(script, folder, size, {"SECOND_METER": json.dumps(settings)}, place)
        _wait(place, lambda: process.poll() is not None, seconds, most)
        status = process.poll()
        _end(process)
        return Run(_losses(place), LOSS.findall((place / "log").read_text(errors="replace")), status)


def watched_run(script: Script, folder: Path, size: int, seconds: float, most: int = NEVER) -> Run:
    """Start a script in the same way under the product's watch, which reads memory for a while and never ends it."""
    with tempfile.TemporaryDirectory() as notes:
        place = Place(Path(notes) / "notes", Path(notes) / "out", Path(notes) / "log")
        place.notes.mkdir()
        place.out.mkdir()
        place.log.touch()
        watching = Watching(memory_steps=WATCHED_STEPS, timed_steps=NEVER, timed_seconds=NEVER)
        with in_folder(folder, _with_meter(script, SECOND_METER=json.dumps({"losses": notes}))):
            watched = begin_command(_spec(script), size, watching, place)
        _wait(Path(notes), watched.has_ended, seconds, most)
        is_over = watched.has_ended()
        status = watched.end()
        printed = LOSS.findall(place.log.read_text(errors="replace"))
        return Run(_losses(Path(notes)), printed, status if is_over else None)


def _spec(script: Script) -> TuneSpec:
    return TuneSpec(
        tuple(script.arguments()), device="cpu", memory_limit_bytes=1 << 40, batch=script.batch or "template"
    )


@contextmanager
def in_folder(folder: Path, variables: dict[str, str]) -> Iterator[None]:
    """Stand in a folder with these variables, which what is started takes over."""
    before, kept = Path.cwd(), dict(os.environ)
    os.environ |= variables
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ |= kept


def _with_meter(script: Script, **more: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(METER), script.variables().get("PYTHONPATH"))))
    return {**script.variables(), "PYTHONPATH": path, **more}


def _losses(notes: Path) -> dict[int, list[str]]:
    files = sorted(notes.glob("*.losses"), key=lambda path: int(path.stem))
    return {place: path.read_text().splitlines() for place, path in enumerate(files)}


def _wait(notes: Path, has_ended: Callable[[], bool], seconds: float, most: int) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not has_ended() and sum(map(len, _losses(notes).values())) <= most:
        time.sleep(0.2)


def losses_differ(one: Run, other: Run) -> tuple[int, float | None]:
    """Return how many losses were compared, of each process those that both starts have, and how far any two are apart.

    As a part of the larger; 0 is the same to the last bit, None where there was none to compare.
    """
    pairs = [
        (float.fromhex(a), float.fromhex(b))
        for place in one.losses.keys() & other.losses.keys()
        for a, b in zip(one.losses[place], other.losses[place], strict=False)
    ]
    return len(pairs), max((_apart(a, b) for a, b in pairs), default=None)


def _apart(one: float, other: float) -> float:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    both = math.isfinite(one) and math.isfinite(other)
    return abs(one - other) / max(abs(one), abs(other)) if both else math.inf
