"""Reads the queue and the devices, and forecasts by `analysis.runs.scheduling` when waiting runs start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from time import monotonic
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from analysis.models import Device, Run, State
from analysis.runs.placement import request_of, slot_of
from analysis.runs.scheduling import SlotState, WaitingRun, forecast

POSITIONS_MAX = 1_000
"""With more runs than this in the queue no position is shown: each forecast would have to read all of them."""

_RUNS_OF_A_MODEL = 20
_READ = (
    "requested_by_id",
    "priority",
    "created_at",
    "model",
    "requested_device_id",
    "requested_kind",
    "requested_device_class",
    "needs_bytes",
    "needs_compute_capability",
    "accepts_shared_device",
)


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """The position of a waiting run: 1 starts next. `start_at` is None when it is unknown."""

    position: int
    start_at: datetime | None


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

    A run that no device may take, or that is very far back, has no position; nor has any run while there are more
    than POSITIONS_MAX in the queue.
    """
    return positions_of({run.pk for run in runs if run.state == State.QUEUED and not run.is_estimate})


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
    waiting = list(queue.order_by().only(*_READ)[: POSITIONS_MAX + 1])
    if len(waiting) > POSITIONS_MAX:
        return _Forecast(made_at_seconds, _TOO_MANY, {})
    running_now = Run.objects.on_devices().running().only("device_id", "requested_by_id", "model", "started_at")
    running = {run.device_id: run for run in running_now}
    typical = {model: typical_seconds(model) for model in {run.model for run in (*waiting, *running.values())}}
    expected = forecast(
        [_waiting(run, typical) for run in waiting],
        _cards(running, typical, now),
        now=now,
        last_started=Run.objects.on_devices().last_started({run.requested_by_id for run in waiting}),
    )
    positions = {
        run_id: QueuePosition(
            at.position, None if at.start_seconds is None else now + timedelta(seconds=at.start_seconds)
        )
        for run_id, at in expected.items()
    }
    return _Forecast(made_at_seconds, frozenset(run.pk for run in waiting), positions)


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


def _waiting(run: Run, typical: Mapping[str, float | None]) -> WaitingRun:
    return WaitingRun(run.pk, run.requested_by_id, run.priority, run.created_at, request_of(run), typical[run.model])


def _cards(running: Mapping[int | None, Run], typical: Mapping[str, float | None], now: datetime) -> list[SlotState]:
    """Return the devices that take runs; when a device with a silent worker will be free is unknown."""
    is_up = Exists(Device.objects.seen_lately().filter(pk=OuterRef("pk")))
    allowed = _allow_lists()
    cards = []
    devices: QuerySet[Any] = Device.objects.taking_runs().annotate(is_up=is_up)
    for device in devices:
        card, run = slot_of(device, allowed.get(device.pk)), running.get(device.pk)
        left = _seconds_left(run, typical, now) if device.is_up else None
        cards.append(SlotState(card, run is not None, run.requested_by_id if run else None, left))
    return cards


def _seconds_left(run: Run | None, typical: Mapping[str, float | None], now: datetime) -> float | None:
    if run is None:
        return 0.0
    took, started_at = typical[run.model], run.started_at
    if took is None or started_at is None:
        return None
    return max(0.0, took - (now - started_at).total_seconds())


def _allow_lists() -> dict[int, set[int]]:
    """Return the people who may use each device that has an allow-list."""
    allowed: dict[int, set[int]] = defaultdict(set)
    by_name = Device.objects.filter(allowed_users__isnull=False).order_by().values_list("pk", "allowed_users")
    by_group = Device.objects.filter(allowed_groups__isnull=False).order_by().values_list("pk", "allowed_groups__user")
    for device_id, user_id in (*by_name, *by_group):
        allowed[device_id] |= {user_id} - {None}  # an empty group still denies the device to others
    return allowed
