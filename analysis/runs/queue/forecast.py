"""Reads the queue and the devices, and forecasts by `analysis.runs.queue.scheduling` when waiting runs start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from time import monotonic
from typing import Any

from django.conf import settings
from django.db.models.fields.json import KeyTransform
from django.utils import timezone

from analysis.models import Device, Run, State
from analysis.runs.queue.placement import request_of, slot_of
from analysis.runs.queue.scheduling import FORECAST_STARTS_MAX, Expectation, SlotState, WaitingRun, forecast

POSITIONS_MAX = 1_000
"""With more runs than this in the queue no position is shown: each forecast would have to read all of them."""

_RUNS_OF_A_MODEL = 20
BUDGET = KeyTransform("time_budget_seconds", "spec")
READ = (
    *("requested_by_id", "priority", "created_at", "model"),
    *("requested_device_id", "requested_kind", "requested_device_class"),
    *("needs_bytes", "needs_compute_capability", "accepts_shared_device", "device_count"),
)


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """The position of a waiting run: 1 starts next, None with more than FORECAST_STARTS_MAX runs before it.

    `start_at` is None when it is unknown.
    `held` is the device that it waits for, where another program holds it; `after_run` is the run that has to end
    first, where no other starts before this one.
    """

    position: int | None
    start_at: datetime | None = None
    held: Device | None = None
    after_run: int | None = None


@dataclass(frozen=True, slots=True)
class _Forecast:
    """All positions that are known, of the runs that waited when it was made."""

    made_at_seconds: float
    waiting: frozenset[int]
    positions: Mapping[int, QueuePosition]

    def serves(self, wanted: set[int]) -> bool:
        """Whether it is young enough, and knows of these runs: one that has just come is not in it."""
        is_young = monotonic() - self.made_at_seconds < settings.QUEUE_FORECAST_KEPT_SECONDS
        return is_young and (self.waiting == _TOO_MANY or wanted <= self.waiting)


_TOO_MANY = frozenset({-1})
"""Stands for the runs of a queue that nobody is told a position in."""
_kept: _Forecast | None = None


def queue_positions(runs: Iterable[Run]) -> dict[int, QueuePosition]:
    """Return the positions of those runs that wait for a device.

    A run that no device may take has none; nor has any run while there are more than POSITIONS_MAX in the queue.
    """
    return positions_of({run.pk for run in runs if run.state == State.QUEUED and run.needs_device})


def positions_of(wanted: set[int]) -> dict[int, QueuePosition]:
    """Return the positions of these waiting runs.

    To play the queue forward reads all of it, and what runs: each process keeps the outcome for a moment, which every
    page with a waiting run on it asks for.
    """
    global _kept
    if not wanted:
        return {}
    if (forecast := _kept) is None or not forecast.serves(wanted):
        forecast = _kept = _forecast_now()
    return {run_id: forecast.positions[run_id] for run_id in wanted if run_id in forecast.positions}


def _forecast_now() -> _Forecast:
    made_at_seconds, now = monotonic(), timezone.now()
    queue = Run.objects.on_devices().queued().filter(cancel_requested=False)
    waiting: list[Any] = list(queue.order_by().only(*READ).annotate(budget_seconds=BUDGET)[: POSITIONS_MAX + 1])
    if len(waiting) > POSITIONS_MAX:
        return _Forecast(made_at_seconds, _TOO_MANY, {})
    running_now = Run.objects.on_devices().running().only("device_id", "requested_by_id", "model", "started_at")
    taking = Device.objects.taking_runs().with_is_up().select_related("host").defer("calibration")
    devices: dict[int | None, Any] = {device.pk: device for device in taking}
    running = runs_by_device(running_now.annotate(budget_seconds=BUDGET), devices.values())
    typical = {model: typical_seconds(model) for model in {run.model for run in (*waiting, *running.values())}}
    expected = forecast(
        [
            WaitingRun(
                *(run.pk, run.requested_by_id, run.priority, run.created_at),
                request_of(run),
                _within_budget(typical[run.model], run),
                most_seconds(run.budget_seconds),
            )
            for run in waiting
        ],
        _cards(devices.values(), running, typical, now),
        now=now,
        last_started=Run.objects.on_devices().last_started({run.requested_by_id for run in waiting}),
    )
    numbers = frozenset(run.pk for run in waiting)
    far_back = numbers if len(expected) == FORECAST_STARTS_MAX else ()
    positions = dict.fromkeys(far_back, QueuePosition(None))
    positions |= {run_id: _position(at, devices, running, now) for run_id, at in expected.items()}
    return _Forecast(made_at_seconds, numbers, positions)


def runs_by_device(running: Iterable[Run], devices: Iterable[Device]) -> dict[int | None, Run]:
    by_id = {run.pk: run for run in running}
    alone: dict[int | None, Run] = {run.device_id: run for run in by_id.values()}
    return alone | {each.pk: by_id[each.held_for_id] for each in devices if each.held_for_id in by_id}


def most_seconds(budget_seconds: float | None) -> float:
    """Return how long an attempt holds its devices at most: then its supervisor ends it."""
    budget = settings.RUN_TIME_BUDGET_MAX_SECONDS if budget_seconds is None else budget_seconds
    return budget + settings.RUN_GRACE_SECONDS


def most_seconds_left(run: Run, budget_seconds: float | None, now: datetime) -> float:
    """Return when a running run's devices are free at the latest; never 0, as it has not ended yet."""
    took = (now - run.started_at).total_seconds() if run.started_at else 0.0
    return max(most_seconds(budget_seconds) - took, 1.0)


def _position(
    at: Expectation, devices: Mapping[int | None, Any], running: Mapping[int | None, Run], now: datetime
) -> QueuePosition:
    device, run = devices[at.device_id], running.get(at.device_id)
    return QueuePosition(
        at.position,
        None if at.start_seconds is None else now + timedelta(seconds=at.start_seconds),
        held=device if device.is_held and run is None else None,
        after_run=run.pk if run is not None and at.is_next_there else None,
    )


def typical_seconds(model: str) -> float | None:
    """Return the median of this model's last finished runs; None when there is none."""
    finished = (
        Run.objects.measuring()
        .trusted()
        .filter(model=model, state=State.FINISHED, started_at__isnull=False, finished_at__isnull=False)
    )
    times = finished.newest_first().values_list("started_at", "finished_at")[:_RUNS_OF_A_MODEL]
    took = [(ended - started).total_seconds() for started, ended in times if started and ended]
    return median(took) if took else None


def _within_budget(seconds: float | None, run: Any) -> float | None:
    return seconds if seconds is None or run.budget_seconds is None else min(seconds, run.budget_seconds)


def _cards(
    devices: Iterable[Any], running: Mapping[int | None, Run], typical: Mapping[str, float | None], now: datetime
) -> list[SlotState]:
    """Return the devices; when one that another program holds, or whose worker is silent, will be free is unknown."""
    allowed, cards = _allow_lists(), []
    for device in devices:
        card, run = slot_of(device, allowed.get(device.pk)), running.get(device.pk)
        is_free = run is None and not device.is_held
        left = None if not device.is_up else 0.0 if is_free else _seconds_left(run, typical, now)
        most = None if run is None else most_seconds_left(run, _budget(run), now)
        cards.append(SlotState(card, run is not None, run.requested_by_id if run else None, left, most))
    return cards


def _budget(run: Any) -> float | None:
    seconds: float | None = run.budget_seconds
    return seconds


def _seconds_left(run: Run | None, typical: Mapping[str, float | None], now: datetime) -> float | None:
    """Return when this run should end; None for another program, and for a run that takes longer than it should."""
    if run is None or run.started_at is None:
        return None
    took = _within_budget(typical[run.model], run)
    left = None if took is None else took - (now - run.started_at).total_seconds()
    return left if left is None or left > 0 else None


def _allow_lists() -> dict[int, set[int]]:
    allowed: dict[int, set[int]] = defaultdict(set)
    by_name = Device.objects.filter(allowed_users__isnull=False).order_by().values_list("pk", "allowed_users")
    by_group = Device.objects.filter(allowed_groups__isnull=False).order_by().values_list("pk", "allowed_groups__user")
    for device_id, user_id in (*by_name, *by_group):
        allowed[device_id] |= {user_id} - {None}  # an empty group still denies the device to others
    return allowed
