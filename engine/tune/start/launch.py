"""One start of a training: what is started, and what is seen of it until enough was noted or it failed.

What makes it is a `Begin`: the package's `command`, `fork` or `warm`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from ...machine.host import oom_kills
from ...machine.scratch import scratch_folder
from ...ranks.emulation import EmulatedRank
from ...report.script_output import MARK
from ...search.stillness import MOST_SECONDS, STILL_SECONDS
from ...text.masking import masked_text
from ...text.noise import is_noise
from ...text.printable import printable_lines
from ..evidence import Ended
from ..file_changes import FileChanges
from ..reading import Reading
from ..seen import News, is_another_about_to_train, last_seen
from .kept_log import kept_log

LOOK_SECONDS = 0.05
GRACE_SECONDS = 0.5  # a rank that fails brings down the others: its file shows which was the first
ANOTHER_SECONDS = 5.0  # how far a training may be behind one that runs next to it without a process group
LAST_BYTES, LAST_LINES, LAST_OUTPUT, LINE_MOST = 8_000, 3, 20, 500


@dataclass(frozen=True, slots=True)
class Watching:
    """How long a start is watched: steps whose memory is read, then steps that are timed.

    A process that trains alone reads no more than `least_steps` where they take longer than `memory_seconds`, and up
    to `still_steps` as long as `still_seconds` are not over.
    """

    memory_steps: int
    timed_steps: int = 6
    timed_seconds: float = 15.0
    least_steps: int | None = None
    memory_seconds: float = MOST_SECONDS
    still_steps: int = 0
    still_seconds: float = STILL_SECONDS
    again: int = 0
    """How many starts of this size there were before, where they may differ: a seed in the command is raised by it."""
    whole_run: bool = False
    rows_folder: str | None = None
    """Where the starts of a whole run share which rows of the data are the largest."""
    look_through_seconds: float = 20.0
    """How long the first start of a whole run may look a data set through."""
    emulated: EmulatedRank | None = None
    """The rank of many that the start stands in for; None: it has all of its ranks."""
    faster: Mapping[str, Any] | None = None
    """What `tune --faster` sets from outside; None: the training as it is."""


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
    on_tick: Callable[[str | None], None] = lambda _: None,
) -> tuple[list[Reading], Ended]:
    """Start the training once; what the hook noted, and how it ended. Nothing of it is left when this returns.

    `on_tick` is called all the time; with what is seen of the training where it has made no step for long.
    """
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
        readings = readings_in(place.notes)
        _reading.cache_clear()  # the events of a start are many, and no other start reads them
        last, changes = last_lines(place.log), FileChanges.read(Path(folder))
        changes.check()
        ended = Ended(
            exit_status=status,
            timed_out_after_seconds=seconds if timed_out else None,
            kernel_killed=bool(status) and oom_kills() > kills,  # a launcher turns its rank's SIGKILL into a 1
            last_lines=f"{MARK}{' | '.join(line.strip() for line in last[-LAST_LINES:])}" if last else "",
            last_output=last,
            log=kept_log(place.log) if status or not _has_shown_all(readings) else None,
            seen=last_seen(place.notes, began),
            began=began,
            wall_seconds=time.monotonic() - began,
            changes=changes,
        )
        return readings, ended


def _has_shown_all(readings: Sequence[Reading]) -> bool:
    return any(r.is_done for r in readings) and not any(r.has_failed for r in readings)


def _watch(running: Running, notes: Path, until: float, on_tick: Callable[[str | None], None]) -> bool:
    """Wait until every rank is done, one failed, or the training ended; true when the time was over first."""
    news, is_enough = News(notes, time.monotonic()), False
    while time.monotonic() < until:
        has_ended = running.has_ended()
        readings = readings_in(notes)
        done = [r for r in readings if r.is_done]
        if any(r.has_failed for r in readings):
            time.sleep(GRACE_SECONDS)
            return False
        is_enough = bool(done) and len(done) >= done[0].processes
        if has_ended or (is_enough and not (done[0].processes == 1 and is_another_about_to_train(notes))):
            return False
        if is_enough:
            until = min(until, time.monotonic() + ANOTHER_SECONDS)
        on_tick(news.due())
        time.sleep(LOOK_SECONDS)
    return not is_enough


def readings_in(notes: Path) -> list[Reading]:
    """Return what was written to its end; a file is renamed into its place."""
    return [_reading(path, path.stat().st_mtime_ns) for path in sorted(notes.glob("*.json"))]


@lru_cache(maxsize=64)
def _reading(path: Path, _: int) -> Reading:
    return Reading(json.loads(path.read_text()))


def last_lines(log: Path) -> tuple[str, ...]:
    with log.open("rb") as file:
        skipped = max(log.stat().st_size - LAST_BYTES, 0)
        file.seek(skipped)
        lines = file.read().decode(errors="replace").splitlines()
    if skipped and len(lines) > 1:
        del lines[0]  # its beginning, which may tell that the rest is a secret, is not there
    lines = [line for line in lines if not is_noise(line)]
    return tuple(masked_text(printable_lines(line).rstrip())[:LINE_MOST] for line in lines[-LAST_OUTPUT:])
