"""One start of a training, made by a `Begin`, and what is seen of it until enough was noted or it failed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from ....machine.host import oom_kills
from ....machine.scratch import scratch_folder
from ....report.script_output import MARK
from ....search.stillness import MOST_SECONDS, STILL_SECONDS
from ....settings.ranks.emulation import EmulatedRank
from ....text.masking import masked_text
from ....text.noise import is_noise
from ....text.printable import printable_lines
from ..hook.memorymark_seat import TURNS
from ..notes.file_changes import FileChanges
from ..notes.progress import Ended, News, is_another_about_to_train, last_seen
from ..notes.reading import Reading
from .kept_log import kept_log

LOOK_SECONDS = 0.05
GRACE_SECONDS = 0.5  # a rank that fails brings down the others: its file shows which was the first
ANOTHER_SECONDS = 5.0  # how far a training may be behind one that runs next to it without a process group
LAST_BYTES, LAST_LINES, LAST_OUTPUT, LINE_MOST = 8_000, 3, 20, 500


@dataclass(frozen=True, slots=True)
class Watching:
    """How long a start is watched: steps whose memory is read, then steps that are timed.

    Alone, a process reads `least_steps` where steps are slow, and up to `still_steps` within `still_seconds`.
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
    seat: bool = False
    """Whether a process that trains alone is held after its timed steps, and waits for a turn to time more."""
    faster: Mapping[str, Any] | None = None
    """What `tune --faster` sets from outside; None: the training as it is."""


@dataclass(frozen=True, slots=True)
class Place:
    """The files of one start: the hook's notes, the folder the training may write to, its output."""

    notes: Path
    out: Path
    log: Path


class Running(Protocol):
    def has_ended(self) -> bool: ...
    def end(self) -> int | None:
        """End all processes; return the exit status where they had ended by themselves, negative for a signal."""


Begin = Callable[[int, Watching, Place], Running]
"""Starts a training with a batch size."""
OnTick = Callable[[str | None], None]


def start(
    begin: Begin,
    batch_size: int,
    watching: Watching,
    *,
    seconds: float,
    on_tick: OnTick = lambda _: None,
    hold: Callable[[Started, list[Reading]], bool] = lambda *_: False,
) -> tuple[list[Reading], Ended]:
    """Start the training once; what the hook noted, and how it ended.

    Nothing of it is left when this returns, but where it waits for its next turn and `hold` keeps it. `on_tick` is
    called all the time; with what is seen of the training where it has made no step for long.
    """
    under_way = Started(begin, batch_size, watching)
    readings = under_way.watch(seconds, on_tick)
    if under_way.is_waiting() and hold(under_way, readings):
        seen = last_seen(under_way.place.notes, under_way.began)
        return readings, Ended(seen=seen, began=under_way.began, wall_seconds=under_way.wall_seconds)
    return under_way.end()


def start_ranks(
    once: Callable[..., tuple[list[Reading], Ended]],
    watching: Watching,
    ranks: Sequence[EmulatedRank],
    *,
    seconds: float,
) -> tuple[list[Reading], Ended]:
    """Start the training as each of these ranks, or once as it is without any; a rank that fails to train ends it."""
    if not ranks:
        return once(watching, seconds=seconds)
    readings: list[Reading] = []
    wall_seconds, training = 0.0, 0
    with scratch_folder() as folder:
        for rank in ranks:
            as_rank = replace(watching, timed_steps=0, emulated=replace(rank, folder=folder))
            found, ended = once(as_rank, seconds=seconds - wall_seconds)
            readings += found
            wall_seconds += ended.wall_seconds
            training = max(training, sum(each.is_done for each in found), ended.seen.training if ended.seen else 0)
            if not any(each.is_done for each in found) or any(each.has_failed for each in found):
                break
    if ended.seen is not None:
        ended = replace(ended, seen=replace(ended.seen, training=training))
    return readings, replace(ended, wall_seconds=wall_seconds)


class Started:
    """A start under way, in a folder of its own. Nothing of it is left behind `end`, or where `watch` raises."""

    def __init__(self, begin: Begin, batch_size: int, watching: Watching) -> None:
        with ExitStack() as owned:
            self._folder = Path(owned.enter_context(scratch_folder()))
            self.place = Place(self._folder / "notes", self._folder / "out", self._folder / "log")
            self.place.notes.mkdir()
            self.place.out.mkdir()
            self.place.log.touch()
            self._pipe = _pipe_of_turns(self.place.notes) if watching.seat else None
            if self._pipe is not None:
                owned.callback(os.close, self._pipe)
            self._timed_out_after_seconds: float | None = None
            self._kills, self.began = oom_kills(), time.monotonic()
            self.running = begin(batch_size, watching, self.place)
            self._owned = owned.pop_all()

    def watch(self, seconds: float, on_tick: OnTick) -> list[Reading]:
        """Wait until every rank is done, one failed, or the training ended; what the hook noted."""
        try:
            if _watch(self.running, self.place.notes, time.monotonic() + seconds, on_tick):
                self._timed_out_after_seconds = seconds
        except BaseException:
            with self._owned:
                self.running.end()
            raise
        return readings_in(self.place.notes)

    @property
    def wall_seconds(self) -> float:
        return time.monotonic() - self.began

    def is_waiting(self) -> bool:
        """Whether the start waits for its next turn: none of several ranks or of trainings side by side does."""
        waiting = [each for each in readings_in(self.place.notes) if each.ended == "done"]
        is_alone = len(waiting) == 1 and waiting[0].processes == 1
        return self._pipe is not None and is_alone and not self.running.has_ended()

    def go_on(self, steps: int) -> None:
        assert self._pipe is not None
        for path in self.place.notes.glob("*.json"):
            path.unlink()
        os.write(self._pipe, f"{steps}\n".encode())

    def end(self) -> tuple[list[Reading], Ended]:
        with self._owned:
            status = self.running.end()
            readings, timed_out_after = readings_in(self.place.notes), self._timed_out_after_seconds
            _reading.cache_clear()  # the events of a start are many, and no other start reads them
            last, changes = last_lines(self.place.log), FileChanges.read(self._folder)
            changes.check()
            ended = Ended(
                exit_status=status,
                timed_out_after_seconds=timed_out_after,
                kernel_killed=bool(status)
                and oom_kills() > self._kills,  # a launcher turns its rank's SIGKILL into a 1
                last_lines=f"{MARK}{' | '.join(line.strip() for line in last[-LAST_LINES:])}" if last else "",
                last_output=last,
                log=kept_log(self.place.log) if status or not _has_shown_all(readings) else None,
                seen=last_seen(self.place.notes, self.began),
                began=self.began,
                wall_seconds=self.wall_seconds,
                changes=changes,
            )
            return readings, ended


def _pipe_of_turns(notes: Path) -> int:
    """Make the pipe, and hold both its ends: neither side waits for the other to open it."""
    os.mkfifo(notes / TURNS)
    return os.open(notes / TURNS, os.O_RDWR)


def _has_shown_all(readings: Sequence[Reading]) -> bool:
    return any(r.is_done for r in readings) and not any(r.has_failed for r in readings)


def _watch(running: Running, notes: Path, until: float, on_tick: OnTick) -> bool:
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
