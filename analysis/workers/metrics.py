"""The content of /metrics: read from the database at scrape time, in a fixed number of queries, none over all history.

Nothing is counted in this process, so several web servers answer the same, and a restart loses nothing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min
from django.db.models.functions import Now
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from analysis.database import database_now
from analysis.models import Attempt, Delivery, Device, MaintenanceMixin, NewsEvent, Run, State
from analysis.workers.health import free_bytes

_LAST_HOUR, _LAST_DAY = timedelta(hours=1), timedelta(days=1)
_MOST_ENDED_RUNS = 20_000
_QUANTILES = (0.5, 0.95, 1.0)
_DEVICE_LABELS = ("host", "device", "uuid")
_DEVICE_FIGURES = {
    "memory_used_bytes": "Memory in use by all processes, as last read",
    "foreign_used_bytes": "Memory that other processes held when a worker last tried to start a run",
    "capacity_bytes": "Memory of the device",
}
_DEVICE_FLAGS = {
    "enabled": "1: the administrator lets the device take new runs",
    "drained": "1: the device or its host is drained and takes no new run",
    "in_maintenance": "1: the device or its host is in maintenance now",
    "held": "1: another program, which is no run of this portal, held the device when its worker last looked",
}


class FleetCollector(Collector):
    """Reads the database once per scrape; one registry is made for each."""

    def collect(self) -> Iterator[Metric]:
        now = database_now()
        yield from _waiting(now)
        yield from _estimates()
        yield from _running(now)
        yield from _ended(now)
        yield _attempts()
        yield from _devices(now)
        yield from _news(now)
        if (free := free_bytes()) is not None:
            text = "Free space of the data folder of the web server's host"
            yield GaugeMetricFamily("memorymark_data_folder_free_bytes", text, free)


def metrics_text() -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(FleetCollector())
    return generate_latest(registry)


def _waiting(now: datetime) -> Iterator[Metric]:
    queued = GaugeMetricFamily("memorymark_runs_queued", "Waiting runs, by priority", labels=("priority",))
    age = GaugeMetricFamily("memorymark_runs_queued_oldest_seconds", "Time the oldest waiting run has waited; 0: none")
    rows = Run.objects.on_devices().queued().order_by().values("priority")
    found = {row["priority"]: row for row in rows.annotate(count=Count("pk"), oldest=Min("created_at"))}
    for priority in Run.Priority:
        queued.add_metric((priority.name.lower(),), found.get(priority, {"count": 0})["count"])
    age.add_metric((), _age_seconds(min((row["oldest"] for row in found.values()), default=None), now))
    yield from (queued, age)


def _running(now: datetime) -> Iterator[Metric]:
    running = Run.objects.on_devices().running().aggregate(count=Count("pk"), oldest=Min("started_at"))
    yield GaugeMetricFamily("memorymark_runs_running", "Running runs", running["count"])
    age = _age_seconds(running["oldest"], now)
    yield GaugeMetricFamily("memorymark_runs_running_oldest_seconds", "Running time of the oldest running run", age)


def _ended(now: datetime) -> Iterator[Metric]:
    """Count the runs that ended, by terminal state, with 0 where there were none: a gap in a series hides a rate."""
    ended = GaugeMetricFamily("memorymark_runs_ended_last_hour", "Runs that ended, by state", labels=("state",))
    seconds = GaugeMetricFamily(
        "memorymark_run_duration_last_hour_seconds", "From a run's last start to its end", labels=("state", "quantile")
    )
    durations = _durations_seconds()
    for state in (State.FINISHED, State.FAILED, State.CANCELLED, State.INTERRUPTED):
        counted, known = durations[state], sorted(value for value in durations[state] if value is not None)
        ended.add_metric((state.value,), len(counted))
        for quantile in _QUANTILES if known else ():
            seconds.add_metric((state.value, f"{quantile:g}"), nearest_rank(known, quantile))
    yield from (ended, seconds)


def _durations_seconds() -> dict[str, list[float | None]]:
    """Return durations by state; None for a run that was cancelled before its start."""
    rows = Run.objects.on_devices().filter(finished_at__gte=Now() - _LAST_HOUR).order_by("-finished_at")
    durations: dict[str, list[float | None]] = defaultdict(list)
    for state, started_at, finished_at in rows.values_list("state", "started_at", "finished_at")[:_MOST_ENDED_RUNS]:
        took = finished_at - started_at if started_at and finished_at else None
        durations[state].append(took.total_seconds() if took is not None else None)
    return durations


def _estimates() -> Iterator[Metric]:
    """Count estimates apart: they measure nothing and use no device, so no other figure includes them."""
    open_now = Run.objects.estimating().filter(state__in=(State.QUEUED, State.RUNNING)).order_by()
    counted = dict(open_now.values_list("state").annotate(count=Count("pk")))
    yield GaugeMetricFamily("memorymark_estimates_queued", "Waiting estimates", counted.get(State.QUEUED, 0))
    yield GaugeMetricFamily("memorymark_estimates_running", "Estimates under way", counted.get(State.RUNNING, 0))
    ended = GaugeMetricFamily("memorymark_estimates_ended_last_hour", "Estimates that ended", labels=("state",))
    rows = Run.objects.estimating().filter(finished_at__gte=Now() - _LAST_HOUR).order_by().values_list("state")
    found = dict(rows.annotate(count=Count("pk")))
    for state in (State.FINISHED, State.FAILED, State.CANCELLED, State.INTERRUPTED):
        ended.add_metric((state.value,), found.get(state, 0))
    yield ended


def nearest_rank(ordered: Sequence[float], quantile: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    return ordered[max(math.ceil(quantile * len(ordered)), 1) - 1]


def _attempts() -> Metric:
    attempts = GaugeMetricFamily(
        "memorymark_attempts_last_day", "Attempts that started, by outcome and cause", labels=("outcome", "cause")
    )
    on_devices = Attempt.objects.filter(device__isnull=False)  # those of estimates have none
    rows = on_devices.filter(started_at__gte=Now() - _LAST_DAY).order_by().values_list("outcome", "cause")
    for outcome, cause, count in rows.annotate(count=Count("pk")):
        attempts.add_metric((outcome or State.RUNNING.value, cause), count)
    return attempts


def _devices(now: datetime) -> Iterator[Metric]:
    rows = [_device_row(device, now) for device in Device.objects.select_related("host").order_by("pk")]
    texts = {"heartbeat_age_seconds": "Since the last sign of life of its worker", **_DEVICE_FIGURES, **_DEVICE_FLAGS}
    yield from (_per_device(name, text, rows) for name, text in texts.items())


def _device_row(device: Device, now: datetime) -> dict[str, Any]:
    both: tuple[MaintenanceMixin, ...] = (device, device.host)
    return {
        "labels": (device.host.name, device.device, device.uuid),
        "heartbeat_age_seconds": device.last_seen_at and _age_seconds(device.last_seen_at, now),
        **{name: getattr(device, name) for name in _DEVICE_FIGURES},
        "enabled": device.enabled,
        "drained": any(upkeep.drained for upkeep in both),
        "held": device.is_held,
        "in_maintenance": any(upkeep.is_in_maintenance(now) for upkeep in both),
    }


def _per_device(name: str, text: str, rows: Iterable[dict[str, Any]]) -> Metric:
    """Return one gauge per device; an unknown value is left out, never 0. The UUID tells cards of a row apart."""
    family = GaugeMetricFamily(f"memorymark_device_{name}", text, labels=_DEVICE_LABELS)
    for row in rows:
        if row[name] is not None:
            family.add_metric(row["labels"], float(row[name]))
    return family


def _news(now: datetime) -> Iterator[Metric]:
    """Report what waits for its sender; what waits for a later attempt at a failing receiver is not overdue."""
    deliveries = Delivery.objects.waiting().aggregate(count=Count("pk"), oldest=Min("due_at"))
    events = NewsEvent.objects.filter(dispatched_at=None).aggregate(oldest=Min("created_at"))
    yield GaugeMetricFamily("memorymark_deliveries_waiting", "Notifications not yet delivered", deliveries["count"])
    overdue = max(_age_seconds(found["oldest"], now) for found in (deliveries, events))
    text = "Time the oldest notification that is due has waited for its sender; 0: none"
    yield GaugeMetricFamily("memorymark_news_overdue_seconds", text, overdue)


def _age_seconds(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else max((now - since).total_seconds(), 0.0)
