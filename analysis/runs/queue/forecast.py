"""Reads the queue and the devices, and forecasts by `analysis.runs.queue.scheduling` when waiting runs start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import median
from typing import Any

from django.conf import settings
from django.core.cache import cache

from analysis.models import CPU, Run, State
from analysis.runs.columns.series import SeriesKey
from analysis.runs.queue.queue_now import QueueNow, queue_now, within_budget
from analysis.runs.queue.scheduling import (
    FORECAST_STARTS_MAX,
    PlayedDevice,
    assumed,
    forecast,
    group_of,
)
from analysis.runs.queue.scheduling import QueuePosition as QueuePosition
from engine.settings.spec import CPU_DEFAULT_LIMIT_BYTES

_RUNS_READ = 20
_KEPT = "queue_positions"
_TOO_MANY = -1
"""Stands for the runs of a queue that nobody is told a position in."""


def queue_positions(runs: Iterable[Run]) -> dict[int, QueuePosition]:
    """Return the positions of the waiting runs; none for a run that no device may take, or with READ_MAX waiting.

    A process keeps a forecast a moment, as it reads the whole queue; one serves that was made when all these waited.
    """
    wanted = {run.pk for run in runs if run.state == State.QUEUED and run.needs_device}
    if not wanted:
        return {}
    found = cache.get(_KEPT)
    if found is None or not (_TOO_MANY in found or wanted <= found.keys()):
        found = _forecast_now()
        cache.set(_KEPT, found, settings.QUEUE_FORECAST_KEPT_SECONDS)
    return {run_id: at for run_id in wanted if (at := found.get(run_id)) is not None}


def _forecast_now() -> dict[int, QueuePosition | None]:
    """Return what is said of each waiting run, None where no device may take it."""
    queue = queue_now()
    if not queue.is_whole:
        return {_TOO_MANY: None}
    models = {run.model for run in (*queue.waiting, *queue.running.values())}
    typical = {model: typical_seconds(model) for model in models}
    found = forecast(
        queue.waiting_runs(typical),
        [_played(device, queue, typical) for device in queue.devices.values()],
        now=queue.now,
        running=queue.held,
        last_started=queue.last_started,
    )
    others = QueuePosition(None) if len(found) == FORECAST_STARTS_MAX else None
    return {run.pk: others for run in queue.waiting} | found


def typical_seconds(model: str | None = None) -> float | None:
    """Return the median time of the last finished runs, of this model or of any; None without finished runs."""
    finished = Run.objects.measuring().trusted().filter(state=State.FINISHED, started_at__isnull=False)
    of_model = finished.order_by("-finished_at") if model is None else finished.filter(model=model).newest_first()
    return seconds_of(of_model.filter(finished_at__isnull=False).only("started_at", "finished_at")[:_RUNS_READ])


def seconds_of(runs: Iterable[Run]) -> float | None:
    """Return the median time that runs took; None without any."""
    took = durations_seconds(runs)
    return median(took) if took else None


def durations_seconds(runs: Iterable[Run]) -> list[float]:
    return [(run.finished_at - run.started_at).total_seconds() for run in runs if run.started_at and run.finished_at]


def runs_like(spec: Mapping[str, Any], device_name: str) -> list[Run]:
    """Return the newest measurements of a training's series that had such a card to themselves."""
    series = series_on(spec, device_name)
    same = {name: value for name, value in series.settings if name in ("precision", "optimizer")}
    finished = Run.objects.measuring().trusted().filter(state=State.FINISHED, is_shared=False, **same)
    alike = finished.filter(model=series.model_of_runs, device_name=device_name[:200]).order_by("-finished_at", "-id")
    read = alike.only("spec", "attempt", "largest_batch_size", "certified", "started_at", "finished_at")[:_RUNS_READ]
    return [run for run in read if series_on(run.spec, device_name) == series]


def series_on(spec: Mapping[str, Any], device_name: str) -> SeriesKey:
    """Return the series of a training where it is executed: a CPU always has a memory limit."""
    limit = spec.get("memory_limit_bytes") or (CPU_DEFAULT_LIMIT_BYTES if spec.get("device") == CPU else None)
    return SeriesKey.of_run({**spec, "memory_limit_bytes": limit}, device_name)


def _played(device: Any, queue: QueueNow, typical: Mapping[str, float | None]) -> PlayedDevice:
    run = queue.running.get(device.pk)
    left = _seconds_left(device, run, queue, typical)
    free_at = assumed(left)
    latest = max(free_at, queue.free_after(device) or 0.0)
    played = PlayedDevice(device.pk, group_of(device), free_at, latest, is_known=left is not None)
    if run is not None:
        return replace(played, run_id=run.pk, person=run.requested_by_id)
    return replace(played, held=device) if device.is_held else played


def _seconds_left(device: Any, run: Run | None, queue: QueueNow, typical: Mapping[str, float | None]) -> float | None:
    """Return when the device should be free; None: another program holds it, its worker is silent, its run is late."""
    if not device.is_up or (run is None and device.is_held) or (run is not None and run.started_at is None):
        return None
    if run is None:
        return 0.0
    took = within_budget(typical[run.model], run)
    left = None if took is None else took - queue.seconds_of(run)
    return left if left is None or left > 0 else None
