"""PURE: which waiting run may run where, which runs next, and when a waiting run can expect to start.

The order: the highest priority; then the person whose runs hold the fewest devices; then the person whose last start is
longest ago (never: first); then the oldest run. Runs without a person count as one person.
`analysis.runs.queue.reservation` says what follows where runs need several devices.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import nsmallest
from itertools import chain

from analysis.models.querysets import FOREIGN_SHARE_MAX
from analysis.runs.queue.reservation import Seat, starts

FORECAST_STARTS_MAX = 50
"""How far ahead the forecast looks: beyond that, an expected start would be a guess."""

_ASSUMED_SECONDS = 300.0  # assumed for a model without a finished run: it orders the forecast, but gives no times


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """The device that a run requests: a particular one, or any of a kind whose name contains the class."""

    device_id: int | None = None
    kind: str = ""
    device_class: str = ""
    needs_bytes: int | None = None
    needs_compute_capability: float | None = None
    accepts_shared_device: bool = False
    device_count: int = 1


@dataclass(frozen=True, slots=True)
class Slot:
    """The properties of a device that matter for placement. None means unknown or unlimited."""

    device_id: int
    kind: str
    name: str
    capacity_bytes: int
    compute_capability: float | None = None
    foreign_used_bytes: int | None = None
    allowed: frozenset[int] | None = None
    host_id: int = 0
    is_partition: bool = False

    @property
    def group(self) -> tuple[int, str]:
        """Host and model: devices are used together only within such a group."""
        return self.host_id, self.name

    @property
    def is_shared(self) -> bool:
        return (self.foreign_used_bytes or 0) > FOREIGN_SHARE_MAX * self.capacity_bytes


@dataclass(frozen=True, slots=True)
class FairShareEntry:
    """One person's claim to the next device, for their runs of one priority. `running`: devices that they hold."""

    person: int | None
    priority: int
    oldest_created_at: datetime
    running: int = 0
    last_started_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A queued run. `typical_seconds`: how long runs of its model take, None if none finished.

    `most_seconds`: how long it may take, by its time budget.
    """

    run_id: int
    person: int | None
    priority: int
    created_at: datetime
    ask: ResourceRequest
    typical_seconds: float | None = None
    most_seconds: float = math.inf

    @property
    def device_count(self) -> int:
        return self.ask.device_count


@dataclass(frozen=True, slots=True)
class SlotState:
    """A device that takes runs, the person whose run it executes, and the seconds until it may be free (None: unknown).

    `most_seconds_left`: until it is free at the latest. A device that another program holds executes no run, and when
    it will be free is unknown.
    """

    card: Slot
    is_running: bool = False
    person: int | None = None
    seconds_left: float | None = 0.0
    most_seconds_left: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Expectation:
    """The position of a waiting run: 1 starts next. `start_seconds` is from now; None when unknown.

    `device_id` is the device that takes it, if all goes as forecast, and `is_next_there` whether no other run starts
    there before.
    """

    position: int
    start_seconds: float | None
    device_id: int | None = field(default=None, compare=False)
    is_next_there: bool = field(default=False, compare=False)


def is_wanted(ask: ResourceRequest, card: Slot) -> bool:
    if ask.device_id is not None:
        return ask.device_id == card.device_id
    return ask.kind == card.kind and ask.device_class.lower() in card.name.lower()


def has_memory(ask: ResourceRequest, card: Slot) -> bool:
    return ask.needs_bytes is None or ask.needs_bytes <= card.capacity_bytes


def has_capability(ask: ResourceRequest, card: Slot) -> bool:
    """Whether the device's compute capability suffices; an unknown one is assumed to."""
    needed, has = ask.needs_compute_capability, card.compute_capability
    return needed is None or has is None or needed <= has


def may_run(ask: ResourceRequest, card: Slot, person: int | None) -> bool:
    """Whether the run may start on this device: `RunQuerySet.waiting_for` says the same to the database."""
    is_allowed = card.allowed is None or person in card.allowed
    is_shared_enough = ask.accepts_shared_device or not card.is_shared
    if ask.device_count > 1 and card.is_partition:
        return False
    return (
        is_wanted(ask, card) and has_memory(ask, card) and has_capability(ask, card) and is_allowed and is_shared_enough
    )


def fair_share_order(entries: Iterable[FairShareEntry]) -> list[FairShareEntry]:
    return sorted(entries, key=_turn)


def by_turn(waiting: Iterable[WaitingRun]) -> dict[tuple[int | None, int], list[WaitingRun]]:
    """Group runs by person and priority, the oldest first: those of a group start one after another."""
    groups: dict[tuple[int | None, int], list[WaitingRun]] = defaultdict(list)
    for run in sorted(waiting, key=lambda run: (run.created_at, run.run_id)):
        groups[run.person, run.priority].append(run)
    return groups


def in_order(
    groups: Mapping[tuple[int | None, int], Sequence[WaitingRun]],
    running: Mapping[int | None, int],
    last_started: Mapping[int | None, datetime],
) -> Iterator[WaitingRun]:
    """Return runs in the order in which they start; `running`: the devices that each person's runs hold."""
    turns = {
        key: _turn(FairShareEntry(*key, runs[0].created_at, running.get(key[0], 0), last_started.get(key[0])))
        for key, runs in groups.items()
        if runs
    }
    return chain.from_iterable(groups[key] for key in sorted(turns, key=lambda key: turns[key]))


def _turn(standing: FairShareEntry) -> tuple[int, int, bool, float, datetime, int]:
    last = standing.last_started_at
    return (
        -standing.priority,
        standing.running,
        last is not None,
        last.timestamp() if last else 0.0,
        standing.oldest_created_at,
        standing.person or 0,
    )


def forecast(
    waiting: Sequence[WaitingRun],
    cards: Sequence[SlotState],
    *,
    now: datetime,
    last_started: Mapping[int | None, datetime],
) -> dict[int, Expectation]:
    """Simulate the queue, up to FORECAST_STARTS_MAX starts. Runs that no device may take are left out."""
    expected: dict[int, Expectation] = {}
    begun = set[int]()
    for run, seconds, device_id in _starts(by_turn(waiting), cards, now, dict(last_started)):
        expected[run.run_id] = Expectation(len(expected) + 1, seconds, device_id, device_id not in begun)
        begun.add(device_id)
        if len(expected) == FORECAST_STARTS_MAX:
            break
    return expected


def _starts(
    groups: dict[tuple[int | None, int], list[WaitingRun]],
    cards: Sequence[SlotState],
    now: datetime,
    last_started: dict[int | None, datetime],
) -> Iterator[tuple[WaitingRun, float | None, int]]:
    running = Counter(state.person for state in cards if state.is_running)
    states = {state.card.device_id: _Played.of(state) for state in _soonest(cards, _unlike(groups))}
    at = 0.0

    def may_use(run: WaitingRun, device_id: int) -> bool:
        return may_run(run.ask, states[device_id].card, run.person)

    while any(groups.values()):
        unlike = _unlike(groups)
        for number, state in list(states.items()):
            if state.is_running and state.free_at <= at:
                state.is_running = False
                running[state.person] -= 1
            if state.free_at <= at and not any(may_use(run, number) for run in unlike):
                del states[number]  # a forecast gets no new runs
        seats = [Seat(number, state.card.group, state.free_after(at)) for number, state in states.items()]
        start = next(starts(in_order(groups, running, last_started), seats, may_use), None)
        if start is None:
            later = [state.free_at for state in states.values() if state.free_at > at]
            if not later:
                return
            at = min(later)
            continue
        run, taken = start.run, [states[each] for each in start.device_ids]
        groups[run.person, run.priority].remove(run)
        running[run.person] += run.device_count
        last_started[run.person] = now + timedelta(seconds=at)
        is_known = all(state.is_known for state in taken)
        last = max(start.device_ids, key=lambda each: states[each].free_at)
        for state in taken:
            state.begin(run, at, is_known)
        yield run, at if is_known else None, last


def _unlike(groups: Mapping[tuple[int | None, int], Sequence[WaitingRun]]) -> list[WaitingRun]:
    return list({(run.person, run.ask): run for group in groups.values() for run in group}.values())


def _soonest(cards: Sequence[SlotState], runs: Sequence[WaitingRun]) -> list[SlotState]:
    """Return the devices that may get one of the first starts: of a large fleet, few."""
    most = FORECAST_STARTS_MAX * max((run.device_count for run in runs), default=1)
    needed = dict[int, SlotState]()
    for run in runs:
        usable = (state for state in cards if may_run(run.ask, state.card, run.person))
        few = (
            usable if run.device_count > 1 else nsmallest(most, usable, key=lambda state: _assumed(state.seconds_left))
        )
        needed |= {state.card.device_id: state for state in few}
    return [state for state in cards if state.card.device_id in needed]


@dataclass(slots=True)
class _Played:
    """A device in the forecast, in seconds from now: when it is expected to be free, and when at the latest."""

    card: Slot
    person: int | None
    is_running: bool
    free_at: float
    free_at_latest: float
    is_known: bool

    @classmethod
    def of(cls, state: SlotState) -> _Played:
        free_at = _assumed(state.seconds_left)
        latest = max(free_at, state.most_seconds_left or 0.0)
        return cls(state.card, state.person, state.is_running, free_at, latest, state.seconds_left is not None)

    def free_after(self, at: float) -> float:
        return 0.0 if self.free_at <= at else self.free_at_latest - at

    def begin(self, run: WaitingRun, at: float, is_known: bool) -> None:
        takes = _assumed(run.typical_seconds)
        self.person, self.is_running, self.free_at = run.person, True, at + takes
        self.free_at_latest = at + max(takes, run.most_seconds)
        self.is_known = is_known and run.typical_seconds is not None


def _assumed(seconds: float | None) -> float:
    return _ASSUMED_SECONDS if seconds is None else seconds
