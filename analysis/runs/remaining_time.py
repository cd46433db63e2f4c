"""How long a running run may still take: read off runs like it, as a range; where there are too few, not at all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from analysis.models import Run, State
from analysis.runs.series import SeriesKey

RUNS_NEEDED = 3
LOOKED_AT = 20


@dataclass(frozen=True, slots=True)
class RemainingTime:
    """When it ends if it is as quick as the quickest, or as slow as the slowest, of `runs` like it."""

    soonest_at: datetime
    latest_at: datetime
    shortest_seconds: float
    longest_seconds: float
    runs: int


def remaining_time(run: Run) -> RemainingTime | None:
    """None while it does not run, or fewer than three runs like it came to their end without a break."""
    if run.state != State.RUNNING or run.started_at is None or run.device is None:
        return None
    took = _seconds_of_runs_like(run, run.device.name)
    if len(took) < RUNS_NEEDED:
        return None
    shortest, longest = min(took), max(took)
    soonest_at, latest_at = (run.started_at + timedelta(seconds=seconds) for seconds in (shortest, longest))
    return RemainingTime(soonest_at, latest_at, shortest, longest, len(took))


def _seconds_of_runs_like(run: Run, device_name: str) -> list[float]:
    """Of the newest with the same workload, settings and limit on such a device; resumed ones took another time."""
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
