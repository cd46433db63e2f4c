"""PURE: which waiting runs start now, where some need several devices of one host and model, all or none.

The rule: runs have one order, that of the queue, and each starts as soon as enough devices of one host are free. A run
of several devices that cannot start yet reserves those with which it can start soonest: at the latest when the time
budgets of what runs there are over. A run behind it starts on a reserved device only if its own time budget ends
before that.

So nobody starves. No run behind a run of several devices delays it: once it is first, it waits at most for the longest
time budget of what runs on its host then. A run of one device gives way to those before it in the order alone, as
without runs of several devices. Nothing is stored of a reservation: every look at the queue finds the same one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A queued run; `typical_seconds` of its model's runs, None without any; `most_seconds` by its time budget."""

    run_id: int
    person: int | None
    priority: int
    created_at: datetime
    usable: frozenset[int]
    device_count: int = 1
    typical_seconds: float | None = None
    most_seconds: float = math.inf


@dataclass(frozen=True, slots=True)
class Seat:
    """A device that takes runs, with others of its `group`; `free_after_seconds` at the latest, None: unknown."""

    device_id: int
    group: Hashable
    free_after_seconds: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Start:
    run: WaitingRun
    device_ids: tuple[int, ...]


def starts(runs: Iterable[WaitingRun], seats: Sequence[Seat], *, prefers: int | None = None) -> Iterator[Start]:
    """Yield the runs that start now, in the order of `runs`, the queue's.

    A run of one device takes `prefers`, the looking worker's, where it may; a set is the same whoever looks.
    """
    group = {seat.device_id: seat.group for seat in seats}
    free_after = {seat.device_id: seat.free_after_seconds for seat in seats}
    reserved: dict[int, float] = {}
    for run in runs:
        free = [each for each, seconds in free_after.items() if seconds == 0]
        if not free:
            return
        open_now = [each for each in free if each in run.usable and run.most_seconds <= reserved.get(each, math.inf)]
        if run.device_count == 1:
            chosen = [prefers] if prefers in open_now else open_now[:1]
        else:
            chosen = _of_one_group(open_now, group, run.device_count)
        if chosen:
            free_after |= dict.fromkeys(chosen, run.most_seconds)
            yield Start(run, tuple(chosen))
        elif run.device_count > 1:
            others = [each for each in free_after if each not in reserved and each in run.usable]
            reserved |= _soonest(others, group, free_after, run.device_count)


def _of_one_group(devices: Iterable[int], group: Mapping[int, Hashable], count: int) -> list[int]:
    """Return the first so many devices of the first group that has them; empty where none has."""
    by_group: dict[Hashable, list[int]] = defaultdict(list)
    for each in devices:
        by_group[group[each]].append(each)
    return next((of_group[:count] for of_group in by_group.values() if len(of_group) >= count), [])


def _soonest(
    devices: Iterable[int], group: Mapping[int, Hashable], free_after: Mapping[int, float | None], count: int
) -> dict[int, float]:
    by_group: dict[Hashable, list[tuple[float, int]]] = defaultdict(list)
    for each in devices:
        if (seconds := free_after[each]) is not None:
            by_group[group[each]].append((seconds, each))
    sets = [sorted(of_group)[:count] for of_group in by_group.values() if len(of_group) >= count]
    if not sets:
        return {}
    chosen = min(sets, key=lambda each: each[-1][0])
    return {each: chosen[-1][0] for _, each in chosen}
