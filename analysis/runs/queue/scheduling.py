"""PURE: which waiting run may run where, which runs next, and when a waiting run can expect to start.

The order: the highest priority; then the person whose runs hold the fewest devices; then the person whose last start is
longest ago (never: first); then the oldest run. Runs without a person count as one person.
`analysis.runs.queue.reservation` says what follows where runs need several devices.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain

from analysis.models import Device, Run
from analysis.models.querysets import compute_capability, is_partition
from analysis.runs.queue.reservation import Seat, WaitingRun, starts

FORECAST_STARTS_MAX = 50
"""How far ahead the forecast looks: beyond that, an expected start would be a guess."""

_ASSUMED_SECONDS = 300.0  # assumed for a model without a finished run: it orders the forecast, but gives no times


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """The position of a waiting run: 1 starts next, None beyond FORECAST_STARTS_MAX. `start_at` None: unknown.

    `held`: its device, held by another program; `after_run`: the run whose end starts this one, if it is next.
    """

    position: int | None
    start_at: datetime | None = None
    held: Device | None = None
    after_run: int | None = None


@dataclass(slots=True)
class PlayedDevice:
    """A device in the forecast: when it should be free, and when at the latest; `is_known` without assumptions.

    `run_id` and `person`: what runs there now, and whose; `held`: the device itself, where another program holds it.
    """

    device_id: int
    group: Hashable
    free_at: float = 0.0
    free_at_latest: float = 0.0
    is_known: bool = True
    run_id: int | None = None
    person: int | None = None
    held: Device | None = None

    def free_after(self, at: float) -> float:
        return 0.0 if self.free_at <= at else self.free_at_latest - at

    def begin(self, run: WaitingRun, at: float, *, is_known: bool) -> None:
        takes = assumed(run.typical_seconds)
        self.run_id, self.free_at, self.free_at_latest = None, at + takes, at + max(takes, run.most_seconds)
        self.is_known = is_known and run.typical_seconds is not None


def is_wanted(run: Run, device: Device) -> bool:
    if run.requested_device_id is not None:
        return run.requested_device_id == device.pk
    return run.requested_kind == device.kind and run.requested_device_class.lower() in device.name.lower()


def has_memory(run: Run, device: Device) -> bool:
    return run.needs_bytes is None or run.needs_bytes <= device.capacity_bytes


def has_capability(run: Run, device: Device) -> bool:
    """Whether the device's compute capability suffices; an unknown one is assumed to."""
    needed, has = run.needs_compute_capability, compute_capability(device)
    return needed is None or has is None or needed <= has


def may_run(run: Run, device: Device) -> bool:
    """Whether the run may start on this device: `RunQuerySet.waiting_for` says it to the database, with people."""
    if run.device_count > 1 and is_partition(device):
        return False
    is_shared_enough = run.accepts_shared_device or not device.is_shared
    return is_wanted(run, device) and has_memory(run, device) and has_capability(run, device) and is_shared_enough


def group_of(device: Device) -> Hashable:
    """Return host and model: devices are used together only within such a group."""
    return device.host_id, device.name


def by_turn(waiting: Iterable[WaitingRun]) -> dict[tuple[int | None, int], list[WaitingRun]]:
    """Group runs by person and priority, the oldest first: the runs of a group start one after another."""
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
        turn(person, priority, runs[0].created_at, running.get(person, 0), last_started.get(person)): runs
        for (person, priority), runs in groups.items()
        if runs
    }
    return chain.from_iterable(turns[each] for each in sorted(turns))


def turn(
    person: int | None, priority: int, oldest: datetime, running: int = 0, last_started: datetime | None = None
) -> tuple[int, int, bool, float, datetime, int]:
    """Return what sorts the runs of one person and priority; the first may start the next run."""
    started = last_started.timestamp() if last_started else 0.0
    return -priority, running, last_started is not None, started, oldest, person or 0


def forecast(
    waiting: Sequence[WaitingRun],
    devices: Iterable[PlayedDevice],
    *,
    now: datetime,
    running: Mapping[int | None, int],
    last_started: Mapping[int | None, datetime],
) -> dict[int, QueuePosition]:
    """Play the queue forward, up to FORECAST_STARTS_MAX starts. Runs that no device may take are left out."""
    groups, holding, last = by_turn(waiting), Counter(running), dict(last_started)
    wanted = frozenset[int]().union(*(run.usable for run in waiting))
    played = {each.device_id: each for each in devices if each.device_id in wanted}
    ends = [(each.free_at, each.person) for each in played.values() if each.run_id is not None]
    found, at = dict[int, QueuePosition](), 0.0
    while any(groups.values()) and len(found) < FORECAST_STARTS_MAX:
        holding.subtract(person for end, person in ends if end <= at)
        ends = [each for each in ends if each[0] > at]
        seats = [Seat(number, each.group, each.free_after(at)) for number, each in played.items()]
        start = next(starts(in_order(groups, holding, last), seats), None)
        if start is None:
            later = [each.free_at for each in played.values() if each.free_at > at]
            if not later:
                break
            at = min(later)
            continue
        run, taken = start.run, [played[number] for number in start.device_ids]
        groups[run.person, run.priority].remove(run)
        holding[run.person] += run.device_count
        last[run.person] = start_at = now + timedelta(seconds=at)
        is_known, latest = all(each.is_known for each in taken), max(taken, key=lambda each: each.free_at)
        found[run.run_id] = QueuePosition(
            len(found) + 1, start_at if is_known else None, held=latest.held, after_run=latest.run_id
        )
        for each in taken:
            each.begin(run, at, is_known=is_known)
        ends += [(each.free_at, run.person) for each in taken]
    return found


def assumed(seconds: float | None) -> float:
    return _ASSUMED_SECONDS if seconds is None else seconds
