"""PURE: which waiting run may run where, which runs next, and when a waiting run can expect to start.

The order: the highest priority; then the person whose runs hold the fewest devices; then the person whose last start is
longest ago (never: first); then the oldest run. Runs without a person count as one person.
`analysis.runs.queue.reservation` says what follows where runs need several devices.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain

from analysis.models.querysets import FOREIGN_SHARE_MAX
from analysis.runs.queue.reservation import Seat, starts

FORECAST_STARTS_MAX = 500
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
    """Whether this is the requested device, or one of the requested kind and class."""
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
    """Sort by the order in which people get the next device."""
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
    cards: Iterable[SlotState],
    *,
    now: datetime,
    last_started: dict[int | None, datetime],
) -> dict[int, Expectation]:
    """Simulate the queue. Runs that no device may take, or that are too far back, are left out."""
    expected: dict[int, Expectation] = {}
    begun = set[int]()
    queue = _Queue(waiting, now, last_started)
    play = _starts if all(run.device_count == 1 for run in waiting) else _starts_of_several
    for run, seconds, device_id in play(queue, list(cards)):
        expected[run.run_id] = Expectation(len(expected) + 1, seconds, device_id, device_id not in begun)
        begun.add(device_id)
        if len(expected) == FORECAST_STARTS_MAX:
            break
    return expected


def _starts(queue: _Queue, cards: list[SlotState]) -> Iterator[tuple[WaitingRun, float | None, int]]:
    """Yield each start with its time and device, in order: the device that is free first takes the next run."""
    is_known = [card.seconds_left is not None for card in cards]
    holder = [card.person for card in cards]
    free = [(_assumed(card.seconds_left), number) for number, card in enumerate(cards)]
    heapq.heapify(free)
    queue.running.update(card.person for card in cards if card.is_running)
    has_run = [card.is_running for card in cards]
    while free:
        at, number = heapq.heappop(free)
        if has_run[number]:
            queue.running[holder[number]] -= 1
            has_run[number] = False
        run = queue.take(cards[number].card, at)
        if run is None:
            continue  # no waiting run may run here, and a forecast gets no new ones
        yield run, at if is_known[number] else None, cards[number].card.device_id
        has_run[number], holder[number] = True, run.person
        is_known[number] = is_known[number] and run.typical_seconds is not None
        heapq.heappush(free, (at + _assumed(run.typical_seconds), number))


def _starts_of_several(queue: _Queue, cards: list[SlotState]) -> Iterator[tuple[WaitingRun, float | None, int]]:
    """Yield the same where some runs need several devices; the device is the one that they wait for longest."""
    states = {state.card.device_id: _Played.of(state) for state in cards}
    queue.running.update(state.person for state in cards if state.is_running)
    at, groups = 0.0, by_turn(queue.runs())
    while any(groups.values()):
        for state in states.values():
            if state.is_running and state.free_at <= at:
                state.is_running = False
                queue.running[state.person] -= 1
        seats = [Seat(number, state.card.group, state.free_after(at)) for number, state in states.items()]
        order = in_order(groups, queue.running, queue.last_started)
        start = next(starts(order, seats, lambda run, each: may_run(run.ask, states[each].card, run.person)), None)
        if start is None:
            later = [state.free_at for state in states.values() if state.free_at > at]
            if not later:
                return
            at = min(later)
            continue
        queue.remove(start.run, at)
        groups[start.run.person, start.run.priority].remove(start.run)
        taken = [states[each] for each in start.device_ids]
        is_known = all(state.is_known for state in taken)
        last = max(start.device_ids, key=lambda each: states[each].free_at)
        for state in taken:
            state.begin(start.run, at, is_known)
        yield start.run, at if is_known else None, last


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


class _Queue:
    """Waiting runs, grouped by equal order and placement, so that a step looks at groups, not at every run."""

    def __init__(self, waiting: Iterable[WaitingRun], now: datetime, last_started: dict[int | None, datetime]) -> None:
        self.now = now
        self.last_started = dict(last_started)
        self.running: Counter[int | None] = Counter()
        self.groups: dict[tuple[int | None, int, ResourceRequest], deque[WaitingRun]] = defaultdict(deque)
        for run in sorted(waiting, key=lambda run: (run.created_at, run.run_id)):
            self.groups[run.person, run.priority, run.ask].append(run)

    def take(self, card: Slot, at_seconds: float) -> WaitingRun | None:
        """Take the run that this device starts next, and count it as its person's last start."""
        offered = [key for key in self.groups if may_run(key[2], card, key[0])]
        if not offered:
            return None
        key = min(offered, key=self._turn)
        run = self.groups[key][0]
        self.remove(run, at_seconds)
        return run

    def runs(self) -> list[WaitingRun]:
        return [run for group in self.groups.values() for run in group]

    def remove(self, run: WaitingRun, at_seconds: float) -> None:
        """Count a run as its person's last start."""
        key = run.person, run.priority, run.ask
        self.groups[key].remove(run)
        if not self.groups[key]:
            del self.groups[key]
        self.running[run.person] += run.device_count
        self.last_started[run.person] = self.now + timedelta(seconds=at_seconds)

    def _turn(self, key: tuple[int | None, int, ResourceRequest]) -> tuple[object, ...]:
        person, priority, _ = key
        oldest = self.groups[key][0]
        running, last_started_at = self.running[person], self.last_started.get(person)
        return (*_turn(FairShareEntry(person, priority, oldest.created_at, running, last_started_at)), oldest.run_id)
