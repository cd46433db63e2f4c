"""The queue and the fleet as they are now, read once: for what starts next, and for the forecast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Q
from django.db.models.fields.json import KeyTransform

from analysis.database import database_now
from analysis.models import Device, Quota, Run
from analysis.runs.queue.reservation import WaitingRun
from analysis.runs.queue.scheduling import may_run

READ_MAX = 1_000
"""With more waiting runs than this the others are not read: the highest priority and the oldest are the first."""

_ASKED = (
    *("requested_by_id", "requested_device_id", "requested_kind", "requested_device_class", "device_count"),
    *("needs_bytes", "needs_compute_capability", "accepts_shared_device"),
)
"""What says where a run may start."""


@dataclass(frozen=True, slots=True)
class QueueNow:
    """What waits, the devices that take runs, and the runs on them.

    `held`: how many devices each person's runs hold; `is_whole`: whether everything that waits was read.
    """

    now: datetime
    waiting: list[Any]
    is_whole: bool
    devices: dict[int, Any]
    running: Mapping[int | None, Any]
    held: Mapping[int | None, int]
    last_started: dict[int | None, datetime]

    def waiting_runs(self, typical: Mapping[str, float | None] | None = None) -> list[WaitingRun]:
        """Return the rule's view of what waits; `typical`: how long runs of each model take."""
        allowed, usable, runs = self._allowed(), dict[tuple[object, ...], frozenset[int]](), []
        for run in self.waiting:
            asked, person = tuple(getattr(run, name) for name in _ASKED), run.requested_by_id
            if asked not in usable:
                here = (pk for pk, device in self.devices.items() if may_run(run, device))
                usable[asked] = frozenset(pk for pk in here if allowed is None or pk in allowed[person])
            seconds = within_budget((typical or {}).get(run.model), run)
            place = (run.pk, person, run.priority, run.created_at, usable[asked], run.device_count)
            runs.append(WaitingRun(*place, seconds, _most_seconds(run)))
        return runs

    def free_after(self, device: Device) -> float | None:
        """Return the seconds until a device is free at the latest: 0 now, None where another program holds it."""
        run = self.running.get(device.pk)
        if run is None:
            return None if device.is_held else 0.0
        return max(_most_seconds(run) - self.seconds_of(run), 1.0)  # it has not ended yet

    def seconds_of(self, run: Run) -> float:
        return (self.now - run.started_at).total_seconds() if run.started_at else 0.0

    def _allowed(self) -> Mapping[int | None, frozenset[int]] | None:
        """Return the devices that each person may use; None while no list denies any to anybody."""
        if not (
            Device.objects.filter(Q(allowed_users__isnull=False) | Q(allowed_groups__isnull=False)).exists()
            or Quota.objects.filter(devices__isnull=False).exists()
        ):
            return None
        people = {run.requested_by_id for run in self.waiting}
        users = get_user_model().objects.in_bulk([pk for pk in people if pk is not None])
        return {
            pk: frozenset(Device.objects.allowing(None if pk is None else users[pk]).values_list("pk", flat=True))
            for pk in people
        }


def queue_now() -> QueueNow:
    taking = Device.objects.taking_runs().with_is_up().select_related("host").defer("calibration")
    ordered = sorted(taking, key=lambda each: (each.host.name, each.kind, index_of(each)))
    devices: dict[int, Any] = {each.pk: each for each in ordered}
    budget = KeyTransform("time_budget_seconds", "spec")
    queue = Run.objects.on_devices().queued().filter(cancel_requested=False).annotate(budget_seconds=budget)
    columns = queue.order_by("-priority", "created_at", "id").only("priority", "created_at", "model", *_ASKED)
    waiting: list[Any] = list(columns[: READ_MAX + 1])
    running = list(
        Run.objects.on_devices()
        .running()
        .annotate(budget_seconds=budget)
        .only("device_id", "requested_by_id", "model", "started_at", "device_count")
    )
    held = Counter[int | None]()
    for run in running:
        held[run.requested_by_id] += run.device_count
    return QueueNow(
        now=database_now(),
        waiting=waiting[:READ_MAX],
        is_whole=len(waiting) <= READ_MAX,
        devices=devices,
        running=runs_by_device(running, devices.values()),
        held=held,
        last_started=Run.objects.on_devices().last_started({run.requested_by_id for run in waiting}),
    )


def runs_by_device(running: Iterable[Run], devices: Iterable[Device]) -> dict[int | None, Run]:
    by_id = {run.pk: run for run in running}
    alone: dict[int | None, Run] = {run.device_id: run for run in by_id.values()}
    return alone | {each.pk: by_id[each.held_for_id] for each in devices if each.held_for_id in by_id}


def within_budget(seconds: float | None, run: Any) -> float | None:
    return seconds if seconds is None or run.budget_seconds is None else min(seconds, run.budget_seconds)


def index_of(device: Device) -> int:
    """Return the number in the device's name: 3 of cuda:3, and 0 where it has none."""
    _, _, number = device.device.partition(":")
    return int(number) if number.isdigit() else 0


def _most_seconds(run: Any) -> float:
    """Return how long an attempt holds its devices at most: then its supervisor ends it."""
    budget: float | None = run.budget_seconds
    return (settings.RUN_TIME_BUDGET_MAX_SECONDS if budget is None else budget) + settings.RUN_GRACE_SECONDS


def waiting_by_device() -> Counter[int | None]:
    """Count what waits by the named device (None: any), in Python: SQLite would read each run that ever named one."""
    waiting = Run.objects.on_devices().queued().filter(cancel_requested=False)
    return Counter(waiting.order_by().values_list("requested_device", flat=True))
