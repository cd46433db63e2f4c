"""When a running run is expected to end: by its own events, else by similar runs that ended, else unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from django.utils import timezone

from analysis.models import Attempt, Measurement, Run, State
from analysis.runs.columns.series import SeriesKey
from analysis.runs.queue.stored_progress import expected_size, read_progress
from engine import time_left
from engine.time_left.measurement import SoFar

RUNS_NEEDED = 3
LOOKED_AT = 20


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    count: int
    shortest_seconds: float
    longest_seconds: float


@dataclass(frozen=True, slots=True)
class RemainingTime:
    """When the run should end: by `earlier` runs, or by its own events without any; `is_most`: then at the latest."""

    ends_at: datetime
    earlier: EarlierRuns | None = None
    is_most: bool = False

    @property
    def seconds(self) -> float:
        """Return the seconds left from now; 0 where it takes longer than expected."""
        return max((self.ends_at - timezone.now()).total_seconds(), 0.0)


def remaining_time(run: Run, attempt: Attempt | None) -> RemainingTime | None:
    """Return when it should end: by its events, a race's time budget, or three similar runs' median; None: unknown."""
    if run.state != State.RUNNING or run.started_at is None or run.cancel_requested:
        return None
    said, most = progress_of(attempt).get("ends_at"), time_left.budget_of_race(run.spec)
    if isinstance(said, int | float):
        return RemainingTime(datetime.fromtimestamp(said, UTC), is_most=most is not None)
    if most is not None:
        return RemainingTime(run.started_at + timedelta(seconds=most), is_most=True)
    took = _seconds_of_runs_like(run, run.device.name) if run.is_search and run.device is not None else []
    if len(took) < RUNS_NEEDED:
        return None
    ends_at = run.started_at + timedelta(seconds=median(took))
    return RemainingTime(ends_at, EarlierRuns(len(took), min(took), max(took)))


def seconds_left_of(run: Run) -> float | None:
    """Return the seconds left of a run, to the tenth; None where they are not known."""
    if run.state != State.RUNNING:
        return None
    left = remaining_time(run, run.attempts.filter(number=run.attempt).first())
    return None if left is None else round(left.seconds, 1)


def so_far(run: Run, attempt: Attempt | None, probes: Sequence[Measurement]) -> SoFar:
    """Return what is known of a running measurement, as the engine's plan takes it."""
    known = time_left.so_far(run.spec, progress_of(attempt), [row.probe for row in probes])
    estimate = (attempt.environment or {}).get("estimate") if attempt else None
    return replace(known, phase=run.phase, expected=expected_size(estimate))


def progress_of(attempt: Attempt | None) -> dict[str, Any]:
    return read_progress(attempt.progress) if attempt else {}


def _seconds_of_runs_like(run: Run, device_name: str) -> list[float]:
    """Return the durations of the newest runs of the same series. Resumed runs are left out: their times differ."""
    finished = (
        Run.objects.measuring()
        .trusted()
        .filter(
            state=State.FINISHED,
            model=run.model,
            device_name=device_name,
            precision=run.precision,
            optimizer=run.optimizer,
        )
    )
    rows = finished.filter(attempt=1, started_at__isnull=False, finished_at__isnull=False).order_by("-finished_at")
    series = SeriesKey.of_run(run.spec, device_name)
    return [
        (ended - started).total_seconds()
        for spec, started, ended in rows.values_list("spec", "started_at", "finished_at")[:LOOKED_AT]
        if started and ended and SeriesKey.of_run(spec, device_name) == series
    ]
