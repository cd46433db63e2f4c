"""How long a running run may still take: by similar runs that ended, else by its own probes; else unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from analysis.models import Attempt, Measurement, Run, State
from analysis.runs.series import SeriesKey
from engine.plan import SOAK_STEPS, SOAK_STEPS_CPU, SecondsLeft, SoFar, seconds_left

RUNS_NEEDED = 3
LOOKED_AT = 20
CARDS_NEEDED = 2
QUICKER, SLOWER = 0.7, 1.5  # of the cards' average: those left may be of other kinds, and other work comes and goes


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """How long similar runs took."""

    count: int
    shortest_seconds: float
    longest_seconds: float


@dataclass(frozen=True, slots=True)
class RemainingTime:
    """When the run is expected to end: by `earlier` runs, or by its own figures where that is None."""

    soonest_at: datetime
    latest_at: datetime
    earlier: EarlierRuns | None = None


def remaining_time(run: Run, attempt: Attempt | None, probes: Sequence[Measurement]) -> RemainingTime | None:
    """Return the range; None while the run is not running, or where nothing shows how long it takes.

    `probes` are those of this attempt so far.
    """
    if run.state != State.RUNNING or run.started_at is None or run.cancel_requested:
        return None
    if run.is_estimate:
        if run.what_to_change or run.frontier:
            return None  # its own stages say what is left
        return _by_its_cards(attempt)
    if run.is_validation:
        return None
    by_earlier = _by_earlier_runs(run, run.started_at)
    if by_earlier is not None and by_earlier.latest_at > timezone.now():
        return by_earlier
    return _by_its_probes(run, attempt, probes) or by_earlier


def so_far(run: Run, attempt: Attempt | None, probes: Sequence[Measurement]) -> SoFar:
    """Return what is known of a running measurement, as the engine's plan takes it."""
    progress = progress_of(attempt)
    steps = run.spec.get("soak_steps") or (SOAK_STEPS_CPU if run.requested_kind == "cpu" else SOAK_STEPS)
    estimate = ((attempt.environment or {}).get("estimate") or {}) if attempt else {}
    return SoFar(
        phase=run.phase,
        probes=[row.probe for row in probes],
        current_batch_size=int(run.spec.get("current_batch_size") or run.spec["batch_size"]),  # of a validation
        soak_steps=int(steps),
        expected=estimate.get("largest_batch_size"),
        open_seconds=_open_seconds(progress.get("phases") or {}),
        timing_seconds_left=progress.get("timing_seconds_left"),
    )


def progress_of(attempt: Attempt | None) -> dict[str, Any]:
    """Return the stored progress of an attempt; empty before the engine's first event."""
    return (attempt.progress or {}) if attempt else {}


def _open_seconds(phases: dict[str, Any]) -> float:
    """Return what a new process with the model takes: the preparation, where the imports came before it."""
    begun, ended = phases.get("preparing"), phases.get("searching")
    if "estimating" not in phases or begun is None or ended is None:
        return 0.0
    return max(0.0, float(ended) - float(begun))


def _by_its_probes(run: Run, attempt: Attempt | None, probes: Sequence[Measurement]) -> RemainingTime | None:
    known = so_far(run, attempt, probes)
    left = seconds_left(known)
    if left is None:
        return None
    # a bound of the engine is of now; the seconds of probes begin where the last one ended
    since = timezone.now() if known.timing_seconds_left is not None or not probes else probes[-1].recorded_at
    return _from(since, left)


def _by_its_cards(attempt: Attempt | None) -> RemainingTime | None:
    """Each card takes about as long as those before it."""
    progress = progress_of(attempt)
    done, cards = progress.get("cards_done", 0), progress.get("cards", 0)
    begun = (progress.get("phases") or {}).get("predicting")
    if attempt is None or begun is None or done < CARDS_NEEDED:
        return None
    begun_at = attempt.started_at + timedelta(seconds=float(begun))
    each_seconds = max(0.0, (timezone.now() - begun_at).total_seconds()) / done
    left_seconds = each_seconds * (cards - done)
    return _from(timezone.now(), SecondsLeft(QUICKER * left_seconds, SLOWER * left_seconds))


def _from(since: datetime, left: SecondsLeft) -> RemainingTime:
    return RemainingTime(since + timedelta(seconds=left.least), since + timedelta(seconds=left.most))


def _by_earlier_runs(run: Run, started_at: datetime) -> RemainingTime | None:
    """Return the range; None where fewer than three similar runs finished uninterrupted."""
    if run.device is None:
        return None
    took = _seconds_of_runs_like(run, run.device.name)
    if len(took) < RUNS_NEEDED:
        return None
    earlier = EarlierRuns(len(took), min(took), max(took))
    left = SecondsLeft(earlier.shortest_seconds, earlier.longest_seconds)
    ends = _from(started_at, left)
    return RemainingTime(ends.soonest_at, ends.latest_at, earlier)


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
