"""The context of the trend page, from rows that the view has read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.lists.trend.series import Sample, series_of, version_marks
from analysis.lists.trend.step_detection import POINTS_PER_SIDE_MIN, THRESHOLD
from analysis.lists.trend.steps import Acknowledgements, steps_found
from analysis.models import Run
from analysis.pages.trend.plots import trend_plot
from analysis.presentation import labels
from analysis.presentation.charts import chart_of
from analysis.presentation.formatting import percent
from analysis.presentation.kinds import settings_of_run
from analysis.runs.columns.series import SeriesKey


@dataclass(frozen=True, slots=True)
class KnownSeries:
    """An existing series: its address, and how many of the newest runs belong to it."""

    address: str
    model_name: str
    place: str
    settings: tuple[str, ...]
    run_count: int
    is_own_script: bool


def trend_context(
    query: SeriesKey, samples: Sequence[Sample], acknowledgements: Acknowledgements, *, is_cut: bool
) -> dict[str, Any]:
    """Give the page `samples`, oldest first; `is_cut`: there are older ones that are not shown."""
    series, marks = series_of(samples), version_marks(samples)
    steps = [found for one in series for found in steps_found(one, acknowledgements)]
    return {
        "query": query,
        "model_name": labels.model_name(query.model),
        "place": labels.short_device_name(query.gpu),
        "here": f"{labels.model_name(query.model)} on {labels.short_device_name(query.gpu)}",
        "settings": _own_settings(samples, query) if query.is_own_script else settings_of(query),
        "samples": samples,
        "newest_first": samples[::-1],
        "is_cut": is_cut,
        "reported": [sample for sample in samples if sample.origin.is_reported],
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


def _own_settings(samples: Sequence[Sample], query: SeriesKey) -> list[str]:
    """Describe the newest run of an own script: nothing else of it is known."""
    limit = labels.describe_limit(query.memory_limit_bytes)
    return [*(samples[-1].own_settings if samples else ()), *([limit] if limit else [])]


def known_series(runs: Iterable[Run]) -> list[KnownSeries]:
    """Find the series of these runs, newest first, those with the most runs first."""
    found: dict[SeriesKey, list[Run]] = defaultdict(list)
    for run in runs:
        found[SeriesKey.of_run(run.spec, run.device_name)].append(run)
    return [
        KnownSeries(
            address=query.address,
            model_name=labels.model_name(query.model),
            place=labels.short_device_name(query.gpu),
            settings=tuple(settings_of_run(same[0]) if query.is_own_script else settings_of(query)),
            run_count=len(same),
            is_own_script=query.is_own_script,
        )
        for query, same in sorted(found.items(), key=lambda item: -len(item[1]))
    ]
