"""The context of the trend page, from rows that the view has read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis.lists.trend.series import Acknowledgements, Sample, series_of, steps_found, version_marks
from analysis.lists.trend.step_detection import POINTS_PER_SIDE_MIN, THRESHOLD
from analysis.pages.trend.plots import trend_plot
from analysis.presentation import labels
from analysis.presentation.formatting import percent
from analysis.runs.columns.series import SeriesKey
from engine.results.figure_kinds import EMULATED


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
        "charts": [trend_plot(one, marks) for one in series],
    }


def settings_of(query: SeriesKey) -> list[str]:
    field = {"image_size": query.input_size, "sequence_length": query.input_size}
    spec = query.parameters | field
    grade = "" if query.emulate_ranks is None else f"{EMULATED} on one device"
    limit = labels.describe_limit(query.memory_limit_bytes)
    return [*labels.describe_settings(spec), *filter(None, [grade, limit])]


def _own_settings(samples: Sequence[Sample], query: SeriesKey) -> list[str]:
    limit = labels.describe_limit(query.memory_limit_bytes)
    return [*(samples[-1].own_settings if samples else ()), *([limit] if limit else [])]
