"""What is news of runs and devices, decided in one place; of the lab's week in `week`.

That a run ended is written by `analysis.runs.queue.outbox`, in the transaction that ends it. What follows from a
finished measurement is decided here when its event is dispatched; that a device is silent, by the sender's look.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from analysis.formatting import percent
from analysis.lists.trend.query import ids_of_series, samples_of
from analysis.lists.trend.series import Sample, Series, series_of
from analysis.lists.trend.step_detection import POINTS_PER_SIDE_MIN, Step
from analysis.models import Device, NewsEvent, NewsKind, Run, RunKind, State
from analysis.models.querysets import SEEN_LATELY
from analysis.presentation.estimate_error import describe_difference
from analysis.presentation.kinds import run_place
from analysis.presentation.labels import model_name, short_device_name
from analysis.runs.columns.series import SeriesKey
from engine.facts.figure_kinds import DERIVED, ESTIMATED, MEASURED
from engine.questions.documents.estimated import EstimatedCard
from engine.questions.documents.measured import Measured

_SILENCE_IS_NEWS = timedelta(days=1)
"""A device that has been silent for longer is known to be away."""


def news_after(run: Run) -> list[NewsEvent]:
    """Return what else this end means: a wrong estimate, a step of a trend; nothing for an untrusted report."""
    if run.kind != RunKind.MEASUREMENT or not run.is_trusted or run.state != State.FINISHED or not run.result:
        return []
    return [*_contradicted(run), *_stepped(run)]


def note_silent_devices() -> int:
    """Store an event for each device that went silent, once for each silence. Returns how many are silent now."""
    away = Device.objects.taking_runs().select_related("host")
    away = away.filter(last_seen_at__lt=Now() - SEEN_LATELY, last_seen_at__gt=Now() - _SILENCE_IS_NEWS)
    events = []
    for device in away:
        assert device.last_seen_at is not None
        details = {"verdict": f"{device}: no sign of life since {device.last_seen_at:%Y-%m-%d %H:%M:%S} UTC."}
        key = f"silent:{device.pk}:{device.last_seen_at.timestamp():.0f}"
        events.append(NewsEvent(kind=NewsKind.SILENT, key=key, device=device, details=details))
    NewsEvent.objects.bulk_create(events, ignore_conflicts=True)
    return len(events)


def contradiction(estimate: EstimatedCard, peak_error: float | None, measured: int | None) -> str:
    """Say how a measurement contradicts the estimate made before it; empty where it does not.

    The memory is off by more than the estimate's own margin, or the size that it called safe did not fit.
    """
    safe, margin = estimate.safe_batch_size, estimate.margin_fraction
    if measured is not None and safe is not None and measured < safe:
        return f"{safe:,} was estimated to fit with the margin, and at most {measured:,} fits"
    if peak_error is not None and margin is not None and abs(peak_error) > margin:
        return (
            f"the peak memory was estimated {describe_difference(peak_error)}, beyond its margin of {percent(margin)}"
        )
    return ""


def new_steps(before: Sequence[Step], after: Sequence[Step]) -> list[Step]:
    """Return the steps that the newest run made visible; a known step may have moved by a point or two."""
    return [
        step
        for step in after
        if not any(
            abs(step.index - known.index) < POINTS_PER_SIDE_MIN and (step.fraction > 0) == (known.fraction > 0)
            for known in before
        )
    ]


def _contradicted(run: Run) -> list[NewsEvent]:
    estimate = Measured.from_dict(run.result or {}).estimate
    if not estimate or run.is_shared:  # memory of other processes contradicts nothing
        return []
    # a search that memory did not end is a lower bound
    measured = run.largest_batch_size if run.certified else None
    text = contradiction(estimate, run.estimate_peak_error, measured)
    if not text:
        return []
    figures: dict[str, dict[str, Any]] = {
        "estimate_peak_error": {"value": run.estimate_peak_error, "kind": DERIVED},
        "estimated_safe_batch_size": {"value": run.estimated_safe_batch_size, "kind": ESTIMATED},
        "largest_batch_size": {"value": run.largest_batch_size, "kind": MEASURED},
    }
    details = {
        "verdict": f"{model_name(run.model)} on {run_place(run)}: {text}.",
        "figures": {name: figure for name, figure in figures.items() if figure["value"] is not None},
    }
    return [NewsEvent(kind=NewsKind.CONTRADICTED, key=f"contradicted:{run.pk}", run=run, details=details)]


def _stepped(run: Run) -> list[NewsEvent]:
    """Compare the run's series with and without it. Later runs that have ended meanwhile have events of their own."""
    samples = samples_of(ids_of_series(SeriesKey.of_run(run.spec, run.device_name)))
    until = next((place for place, sample in enumerate(samples) if sample.run_id == run.pk), None)
    if until is None:
        return []
    known = {series.key: series.steps for series in series_of(samples[:until])}
    return [
        _step_event(run, series, step)
        for series in series_of(samples[: until + 1])
        for step in new_steps(known.get(series.key, []), series.steps)
    ]


def _step_event(run: Run, series: Series, step: Step) -> NewsEvent:
    first: Sample = series.samples[step.index]
    verb = "rose" if step.fraction > 0 else "fell"
    was, now = series.text(step.before), series.text(step.after)
    name = f"{model_name(run.model)} on {short_device_name(run.device_name)}"
    details = {
        "verdict": f"{name}: {series.title.lower()} {verb} from {was} to {now}, from run {first.run_id} on.",
        "figures": {
            "before": {"value": step.before, "kind": MEASURED},
            "after": {"value": step.after, "kind": MEASURED},
        },
    }
    key = f"step:{first.run_id}:{series.key}"
    return NewsEvent(kind=NewsKind.STEP, key=key, run_id=first.run_id, details=details)
