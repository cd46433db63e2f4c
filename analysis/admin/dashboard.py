"""The figures of the admin panel's first page: read from indexes and small tables, at most once a minute."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.cache import cache
from django.db.models import Count, FloatField, Func
from django.utils import timezone

from analysis.database import database_now
from analysis.lists.totals import LabTotals, lab_totals
from analysis.models import Attempt, Device, Run, State
from analysis.models.querysets import SEEN_LATELY

DAYS = 30
KEPT_SECONDS = 60
CACHE_KEY = "analysis.admin.dashboard"
_SILENT_SHOWN = 10
_BAR_WIDTH = 100.0
_READ_AT_ONCE = 5_000


class Day(Func):
    """A moment as a number of days, which SQLite subtracts quickly."""

    function = "julianday"
    output_field = FloatField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="(EXTRACT(EPOCH FROM %(expressions)s) / 86400)::float8")


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a chart and one row of the table below it."""

    name: str
    value: float
    width: float
    css_class: str = ""


@dataclass(frozen=True, slots=True)
class CachedStats:
    """The figures that need many rows, cached. `gpu_hours` is None while there is no measurement."""

    states: tuple[Bar, ...]
    gpu_hours: float | None
    by_device: tuple[Bar, ...]
    as_of: datetime


@dataclass(frozen=True, slots=True)
class Dashboard:
    """All figures. `oldest_waiting` is a run, `silent` are devices whose worker gave no recent sign of life."""

    totals: LabTotals
    slow: CachedStats
    oldest_waiting: Run | None
    silent: tuple[Device, ...]
    silent_more: int
    device_count: int
    days: int = DAYS

    @property
    def online_count(self) -> int:
        return self.device_count - len(self.silent) - self.silent_more

    @property
    def unused(self) -> tuple[Bar, ...]:
        """Return the share of memory that is unused at today's batch sizes, in percent."""
        percent = 100 * (self.totals.sums.fraction or 0.0)
        return bars([("unused", percent, "bar-bad"), ("in use", 100 - percent)], full=100.0)


def dashboard() -> Dashboard:
    now = database_now()
    stats: CachedStats | None = cache.get_or_set(CACHE_KEY, _compute_stats, KEPT_SECONDS)
    waiting = Run.objects.queued().filter(cancel_requested=False).order_by("created_at", "id")
    oldest = waiting.only("id", "model", "state", "created_at").first()
    devices = list(Device.objects.enabled().select_related("host").defer("calibration"))
    silent = [device for device in devices if device.last_seen_at is None or now - device.last_seen_at > SEEN_LATELY]
    return Dashboard(
        totals=lab_totals(),
        slow=_compute_stats() if stats is None else stats,
        oldest_waiting=oldest,
        silent=tuple(silent[:_SILENT_SHOWN]),
        silent_more=max(0, len(silent) - _SILENT_SHOWN),
        device_count=len(devices),
    )


def _compute_stats() -> CachedStats:
    attempts = Attempt.objects.filter(started_at__gte=timezone.now() - timedelta(days=DAYS))
    ended = (
        attempts.filter(ended_at__isnull=False, device__isnull=False, run__is_trusted=True)
        .exclude(device__kind="cpu")
        .order_by()
    )
    # added up here: to group by device, SQLite would read every attempt there ever was
    seconds: dict[int, float] = {}
    columns = ended.values_list("device", Day("ended_at") - Day("started_at"))
    for device_id, days in columns.iterator(_READ_AT_ONCE):
        seconds[device_id] = seconds.get(device_id, 0.0) + days * 86_400
    names = {device.pk: str(device) for device in Device.objects.select_related("host").filter(pk__in=seconds)}
    hours = {names[pk]: value / 3600 for pk, value in seconds.items() if pk in names}
    longest_first = sorted(hours.items(), key=lambda item: -item[1])
    # in one statement, from the index on the state; deleted runs are included
    counts: dict[str, Any] = dict(Run.all_runs.order_by().values_list("state").annotate(Count("pk")))
    states = bars((State(state).label, counts.get(state, 0), f"state-{state}") for state in State)
    return CachedStats(states, sum(hours.values()) if hours else None, bars(longest_first), timezone.now())


def bars(values: Iterable[tuple[Any, ...]], full: float | None = None) -> tuple[Bar, ...]:
    """PURE: scale bars so that the longest, or `full`, fills the chart, and each value above zero is visible."""
    rows = list(values)
    longest = full or max((row[1] for row in rows), default=0) or 1
    return tuple(
        Bar(name, value, max(0.6, _BAR_WIDTH * value / longest) if value else 0.0, *rest) for name, value, *rest in rows
    )
