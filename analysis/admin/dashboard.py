"""The figures of the admin panel's first page: read from indexes and small tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count

from analysis.database import database_now
from analysis.lists.totals import LabTotals, lab_totals
from analysis.lists.use.days import first_moment, use_by_day
from analysis.lists.use.load import HELD_MAX, held_since
from analysis.models import Device, Run, State

DAYS = 30
_SILENT_SHOWN = 10
_BAR_WIDTH = 100.0


@dataclass(frozen=True, slots=True)
class Bar:
    name: str
    value: float
    width: float
    css_class: str = ""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """All figures; `gpu_hours` are by device, the most first; workers of `silent` devices gave no sign of life."""

    totals: LabTotals
    states: tuple[Bar, ...]
    gpu_hours: tuple[Bar, ...]
    oldest_waiting: Run | None
    silent: tuple[Device, ...]
    silent_more: int
    device_count: int
    as_of: datetime
    days: int = DAYS

    @property
    def online_count(self) -> int:
        return self.device_count - len(self.silent) - self.silent_more

    @property
    def all_gpu_hours(self) -> float:
        return sum(bar.value for bar in self.gpu_hours)

    @property
    def unused(self) -> tuple[Bar, ...]:
        """Return the share of memory that is unused at today's batch sizes, in percent."""
        percent = 100 * (self.totals.sums.fraction or 0.0)
        return bars([("unused", percent, "bar-bad"), ("in use", 100 - percent)], full=100.0)


def dashboard() -> Dashboard:
    now = database_now()
    waiting = Run.objects.queued().filter(cancel_requested=False).order_by("created_at", "id")
    devices = list(Device.all_devices.select_related("host").defer("calibration").with_activity())
    enabled = [device for device in devices if device.enabled and not device.is_reported]
    silent = [device for device in enabled if not device.is_up]
    # in one statement, from the index on the state; deleted runs are included
    counts: dict[str, Any] = dict(Run.all_runs.order_by().values_list("state").annotate(Count("pk")))
    return Dashboard(
        totals=lab_totals(),
        states=bars((State(state).label, counts.get(state, 0), f"state-{state}") for state in State),
        gpu_hours=_gpu_hours([device for device in devices if device.kind != "cpu"], now),
        oldest_waiting=waiting.only("id", "model", "state", "created_at").first(),
        silent=tuple(silent[:_SILENT_SHOWN]),
        silent_more=max(0, len(silent) - _SILENT_SHOWN),
        device_count=len(enabled),
        as_of=now,
    )


def _gpu_hours(gpus: Sequence[Device], now: datetime) -> tuple[Bar, ...]:
    """Add up the hours in which runs held these devices, as the fleet page does."""
    known_since = {device.pk: device.host.registered_at for device in gpus}
    used = use_by_day(held_since(first_moment(now, DAYS))[:HELD_MAX], known_since, now, DAYS)
    hours = [(str(device), used[device.pk].hours) for device in gpus if used[device.pk].hours]
    return bars(sorted(hours, key=lambda each: -each[1]))


def bars(values: Iterable[tuple[Any, ...]], full: float | None = None) -> tuple[Bar, ...]:
    """PURE: scale bars so that the longest, or `full`, fills the chart, and each value above zero is visible."""
    rows = list(values)
    longest = full or max((row[1] for row in rows), default=0) or 1
    return tuple(
        Bar(name, value, max(0.6, _BAR_WIDTH * value / longest) if value else 0.0, *rest) for name, value, *rest in rows
    )
