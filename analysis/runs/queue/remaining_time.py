"""When a running run is expected to end: by its own events, else by similar runs that ended, else unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from django.utils import timezone

from analysis.models import Attempt, Measurement, Run, State
from analysis.runs.queue.forecast import durations_seconds, runs_like
from engine.describe import time_left
from engine.describe.time_left.measurement import SoFar

RUNS_NEEDED = 3


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
    alike = runs_like(run.spec, run.device.name) if run.is_search and run.device is not None else []
    took = durations_seconds(each for each in alike if each.attempt == 1)  # a resumed run takes less
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
    estimate = ((attempt.environment if attempt else None) or {}).get("estimate") or {}
    return replace(known, phase=run.phase, expected=estimate.get("largest_batch_size"))


def progress_of(attempt: Attempt | None) -> dict[str, Any]:
    return (attempt.progress if attempt else None) or {}
