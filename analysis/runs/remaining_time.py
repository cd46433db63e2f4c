"""How long a running run may still take: a range taken from similar runs; unknown where there are too few."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from analysis.models import Run, State
from analysis.runs.series import SeriesKey

RUNS_NEEDED = 3
LOOKED_AT = 20


@dataclass(frozen=True, slots=True)
class RemainingTime:
    """When the run ends if it is as quick as the quickest, or as slow as the slowest, of `runs` similar ones."""

    soonest_at: datetime
    latest_at: datetime
    shortest_seconds: float
    longest_seconds: float
    runs: int


def remaining_time(run: Run) -> RemainingTime | None:
    """Return the range; None while the run is not running, or fewer than three similar runs finished uninterrupted."""
    if run.state != State.RUNNING or run.started_at is None or run.device is None:
        return None
    took = _seconds_of_runs_like(run, run.device.name)
    if len(took) < RUNS_NEEDED:
        return None
    shortest, longest = min(took), max(took)
    soonest_at, latest_at = (run.started_at + timedelta(seconds=seconds) for seconds in (shortest, longest))
    return RemainingTime(soonest_at, latest_at, shortest, longest, len(took))


def _seconds_of_runs_like(run: Run, device_name: str) -> list[float]:
    """Return the durations of the newest runs of the same series. Resumed runs are left out: their times differ."""
    finished = Run.objects.measuring().filter(
        state=State.FINISHED, model=run.model, device_name=device_name, precision=run.precision, optimizer=run.optimizer
    )
    rows = finished.filter(attempt=1, started_at__isnull=False, finished_at__isnull=False).order_by("-finished_at")
    series = SeriesKey.of_run(run.spec, device_name)
    return [
        (ended - started).total_seconds()
        for spec, started, ended in rows.values_list("spec", "started_at", "finished_at")[:LOOKED_AT]
        if started and ended and SeriesKey.of_run(spec, device_name) == series
    ]
