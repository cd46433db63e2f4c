"""Reads the queue and the devices, and forecasts by `analysis.runs.queue.scheduling` when waiting runs start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from time import monotonic
from typing import Any

from django.conf import settings

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
from engine.spec import CPU_DEFAULT_LIMIT_BYTES

_RUNS_READ = 20


@dataclass(frozen=True, slots=True)
class _Forecast:
    """What was said of each waiting run, None where no device may take it; `positions` None: of none, too many wait."""

    made_at_seconds: float
    positions: Mapping[int, QueuePosition | None] | None

    def serves(self, wanted: set[int]) -> bool:
        """Whether the forecast is young enough, and made when all these runs waited."""
        is_young = monotonic() - self.made_at_seconds < settings.QUEUE_FORECAST_KEPT_SECONDS
        return is_young and (self.positions is None or wanted <= self.positions.keys())


_kept: _Forecast | None = None


def queue_positions(runs: Iterable[Run]) -> dict[int, QueuePosition]:
    """Return the positions of the waiting runs; none for a run that no device may take, or with READ_MAX waiting.

    A process keeps a forecast a moment, as it reads the whole queue.
    """
    global _kept
    wanted = {run.pk for run in runs if run.state == State.QUEUED and run.needs_device}
    if not wanted:
        return {}
    if _kept is None or not _kept.serves(wanted):
        _kept = _forecast_now()
    positions = _kept.positions or {}
    return {run_id: at for run_id in wanted if (at := positions.get(run_id)) is not None}


def _forecast_now() -> _Forecast:
    made_at_seconds, queue = monotonic(), queue_now()
    if not queue.is_whole:
        return _Forecast(made_at_seconds, None)
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
    return _Forecast(made_at_seconds, {run.pk: others for run in queue.waiting} | found)


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
    who = (None, None) if run is None else (run.pk, run.requested_by_id)
    held = device if device.is_held and run is None else None
    return PlayedDevice(device.pk, group_of(device), free_at, latest, left is not None, *who, held=held)


def _seconds_left(device: Any, run: Run | None, queue: QueueNow, typical: Mapping[str, float | None]) -> float | None:
    """Return when the device should be free; None: another program holds it, its worker is silent, its run is late."""
    if not device.is_up or (run is None and device.is_held) or (run is not None and run.started_at is None):
        return None
    if run is None:
        return 0.0
    took = within_budget(typical[run.model], run)
    left = None if took is None else took - queue.seconds_of(run)
    return left if left is None or left > 0 else None
