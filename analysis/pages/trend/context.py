"""The context of the trend page, from rows that the view has read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.models import Run, TrendAcknowledgement
from analysis.pages.compare.environment import changed
from analysis.pages.trend.plots import describe_percent, trend_plot
from analysis.pages.trend.series import Sample, Series, series_of, version_marks
from analysis.pages.trend.step_detection import POINTS_PER_SIDE_MIN, THRESHOLD, Step
from analysis.presentation import labels
from analysis.presentation.charts import chart_of
from analysis.presentation.formatting import percent
from analysis.runs.series import SeriesKey

Acknowledgements = Mapping[tuple[int, str], TrendAcknowledgement]


@dataclass(frozen=True, slots=True)
class StepFound:
    """A step with its text, the facts that changed with it, and its note."""

    series: Series
    step: Step
    acknowledgement: TrendAcknowledgement | None

    @property
    def before(self) -> Sample:
        return self.series.samples[self.step.index - 1]

    @property
    def after(self) -> Sample:
        return self.series.samples[self.step.index]

    @property
    def is_worse(self) -> bool:
        return (self.step.fraction > 0) != (self.series.better == "higher")

    @property
    def sentence(self) -> str:
        verb = "rose" if self.step.fraction > 0 else "fell"
        size = describe_percent(self.step).lstrip("+−")
        was, now = self.series.text(self.step.before), self.series.text(self.step.after)
        return f"{self.series.title} {verb} by {size}, from {was} to {now}."

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        return changed(self.before.facts, self.after.facts)


@dataclass(frozen=True, slots=True)
class KnownSeries:
    """An existing series: its address, and how many of the newest runs belong to it."""

    address: str
    model_name: str
    place: str
    settings: tuple[str, ...]
    run_count: int


def trend_context(
    query: SeriesKey, samples: Sequence[Sample], acknowledgements: Acknowledgements, *, is_cut: bool
) -> dict[str, Any]:
    """Give the page `samples`, oldest first; `is_cut`: there are older ones that are not shown."""
    series, marks = series_of(samples), version_marks(samples)
    steps = [_found(one, step, acknowledgements) for one in series for step in one.steps]
    return {
        "query": query,
        "model_name": labels.model_name(query.model),
        "place": labels.short_device_name(query.gpu),
        "settings": settings_of(query),
        "samples": samples,
        "newest_first": samples[::-1],
        "is_cut": is_cut,
        "left_out": [sample for sample in samples if sample.left_out],
        "marks": marks,
        "steps": sorted(steps, key=lambda found: found.after.at, reverse=True),
        "points_needed": POINTS_PER_SIDE_MIN,
        "can_have_steps": any(len(one.values) >= 2 * POINTS_PER_SIDE_MIN for one in series),
        "threshold": percent(THRESHOLD).replace(".0 ", " "),
        "charts": [chart_of(trend_plot(one, marks)) for one in series],
    }


def settings_of(query: SeriesKey) -> list[str]:
    """Describe the series in the format of a run's settings."""
    field = {"image_size": query.input_size, "sequence_length": query.input_size}
    spec = query.parameters | field
    limit = labels.describe_limit(query.memory_limit_bytes)
    return [*labels.describe_settings(spec), *([limit] if limit else [])]


def known_series(runs: Iterable[Run]) -> list[KnownSeries]:
    """Find the series of these runs, those with the most runs first."""
    counts = Counter(SeriesKey.of_run(run.spec, run.device_name) for run in runs)
    return [
        KnownSeries(
            query.address,
            labels.model_name(query.model),
            labels.short_device_name(query.gpu),
            tuple(settings_of(query)),
            count,
        )
        for query, count in counts.most_common()
    ]


def _found(series: Series, step: Step, acknowledgements: Acknowledgements) -> StepFound:
    return StepFound(series, step, acknowledgements.get((series.samples[step.index].run_id, series.key)))
