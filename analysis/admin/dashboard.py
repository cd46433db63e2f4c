"""The figures on the panel's first page: read from indexes and small tables, at most once a minute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.cache import cache
from django.db.models import Count, FloatField, Func, QuerySet
from django.utils import timezone

from analysis.database import database_now
from analysis.models import Attempt, Device, Run, State
from analysis.models.querysets import SEEN_LATELY
from analysis.pages.home.totals import LabTotals, lab_totals

DAYS = 30
KEPT_SECONDS = 60
CACHE_KEY = "analysis.admin.dashboard"
_SILENT_SHOWN = 10
_BAR_WIDTH = 100.0
_READ_AT_ONCE = 5_000


class Day(Func):
    """A moment as a number of days: what SQLite subtracts quickly."""

    function = "julianday"
    output_field = FloatField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="(EXTRACT(EPOCH FROM %(expressions)s) / 86400)::float8")


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of a picture and of the table under it."""

    name: str
    value: float
    width: float
    css_class: str = ""


@dataclass(frozen=True, slots=True)
class CachedStats:
    """What takes reading many rows. `gpu_hours` is None while nothing was measured."""

    states: tuple[Bar, ...]
    gpu_hours: float | None
    by_device: tuple[Bar, ...]
    as_of: datetime


@dataclass(frozen=True, slots=True)
class Dashboard:
    """All of it. `oldest_waiting` is a run, `silent` are devices whose worker gave no sign of life lately."""

    totals: LabTotals
    slow: CachedStats
    oldest_waiting: Run | None
    waited_seconds: float | None
    silent: tuple[Device, ...]
    silent_more: int
    device_count: int
    days: int = DAYS

    @property
    def waste(self) -> tuple[Bar, ...]:
        """Of the memory of all setups, in percent."""
        percent = 100 * (self.totals.waste_share or 0.0)
        return bars([("unused", percent, "bar-bad"), ("used", 100 - percent)], full=100.0)


def dashboard() -> Dashboard:
    now = database_now()
    oldest = _oldest_waiting()
    devices = list(Device.objects.enabled().select_related("host").defer("calibration"))
    silent = [device for device in devices if device.last_seen_at is None or now - device.last_seen_at > SEEN_LATELY]
    return Dashboard(
        totals=lab_totals(),
        slow=_slow(),
        oldest_waiting=oldest,
        waited_seconds=(now - oldest.created_at).total_seconds() if oldest else None,
        silent=tuple(silent[:_SILENT_SHOWN]),
        silent_more=max(0, len(silent) - _SILENT_SHOWN),
        device_count=len(devices),
    )


def _oldest_waiting() -> Run | None:
    waiting = Run.objects.queued().filter(cancel_requested=False).order_by("created_at", "id")
    return waiting.only("id", "model", "state", "created_at").first()


def _slow() -> CachedStats:
    stats: CachedStats | None = cache.get_or_set(CACHE_KEY, _compute_stats, KEPT_SECONDS)
    return _compute_stats() if stats is None else stats


def _compute_stats() -> CachedStats:
    seconds = _seconds_by_device(Attempt.objects.filter(started_at__gte=timezone.now() - timedelta(days=DAYS)))
    names = {device.pk: str(device) for device in Device.objects.select_related("host").filter(pk__in=seconds)}
    hours = {names[pk]: value / 3600 for pk, value in seconds.items() if pk in names}
    longest_first = sorted(hours.items(), key=lambda item: -item[1])
    return CachedStats(_states(), sum(hours.values()) if hours else None, bars(longest_first), timezone.now())


def _seconds_by_device(attempts: QuerySet[Attempt]) -> Mapping[int, float]:
    """Add up the seconds here: to group by the device, SQLite would walk past every attempt there ever was."""
    ended = attempts.filter(ended_at__isnull=False, device__isnull=False).exclude(device__kind="cpu").order_by()
    seconds: dict[int, float] = {}
    columns = ended.values_list("device", Day("ended_at") - Day("started_at"))
    for device_id, days in columns.iterator(_READ_AT_ONCE):
        seconds[device_id] = seconds.get(device_id, 0.0) + days * 86_400
    return seconds


def _states() -> tuple[Bar, ...]:
    """One statement with a count for each state: each from the index on the state, deleted runs and all."""
    counts: dict[str, Any] = dict(Run.all_runs.order_by().values_list("state").annotate(Count("pk")))
    return bars((State(state).label, counts.get(state, 0), f"state-{state}") for state in State)


def bars(values: Iterable[tuple[Any, ...]], full: float | None = None) -> tuple[Bar, ...]:
    """PURE: the longest fills the picture, or `full` does; and what is not zero can be seen."""
    rows = list(values)
    longest = full or max((row[1] for row in rows), default=0) or 1
    return tuple(
        Bar(name, value, max(0.6, _BAR_WIDTH * value / longest) if value else 0.0, *rest) for name, value, *rest in rows
    )
