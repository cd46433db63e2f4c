"""Lists the series of the newest runs, each with its last figure, its change and its line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from analysis.charts.sparkline import line_over_runs
from analysis.formatting import number, percent_more
from analysis.lists.trend.query import SAMPLES_MAX, recommended_speeds
from analysis.lists.trend.series import SizedSpeed
from analysis.lists.trend.step_detection import find_steps, find_stretches
from analysis.models import Run
from analysis.pages.trend.context import settings_of
from analysis.presentation import labels
from analysis.presentation.kinds import settings_of_run
from analysis.runs.columns.series import SeriesKey

SERIES_MAX = 50
"""Series that are listed: of each a part of a result is read."""


def known_series(runs: Iterable[Run]) -> tuple[list[dict[str, Any]], int]:
    """Find the series of these runs, given newest first: the worst change first, with the count of those left out."""
    found: dict[SeriesKey, list[Run]] = defaultdict(list)
    for run in runs:
        found[SeriesKey.of_run(run.spec, run.device_name)].append(run)
    longest = sorted(found.items(), key=lambda item: -len(item[1]))[:SERIES_MAX]
    most = [(query, same, _in_charts(same)) for query, same in longest]
    speeds = recommended_speeds(counted[-1].pk for _, _, counted in most if counted)
    shown = [_series(query, same, counted, speeds) for query, same, counted in most]
    shown.sort(key=lambda series: series.get("step_fraction", 0.0))  # stable: of equal ones the longest comes first
    return shown, len(found) - len(shown)


def _in_charts(runs: Iterable[Run]) -> list[Run]:
    """Return the runs that the page of the series draws, oldest first: certified, on an unshared device."""
    counted = [run for run in runs if run.certified and not run.is_shared and run.largest_batch_size]
    counted.sort(key=lambda run: (run.finished_at is not None and run.finished_at.timestamp(), run.pk))
    return counted[-SAMPLES_MAX:]


def _series(
    query: SeriesKey, runs: Sequence[Run], counted: Sequence[Run], speeds: dict[int, SizedSpeed]
) -> dict[str, Any]:
    sizes = [run.largest_batch_size for run in counted if run.largest_batch_size]
    series = {
        "address": query.address,
        "model_name": labels.model_name(query.model),
        "place": labels.short_device_name(query.gpu),
        "settings": settings_of_run(runs[0]) if query.is_own_script else settings_of(query),
        "run_count": len(runs),
        "is_own_script": query.is_own_script,
        "newest": runs[0],
        "last": number(sizes[-1]) if sizes else "",
        "speed": speeds.get(counted[-1].pk) if counted else None,
    }
    return series | _change(counted, sizes) if len(sizes) > 1 else series


def _change(counted: Sequence[Run], sizes: Sequence[int]) -> dict[str, Any]:
    first, last = sizes[0], sizes[-1]
    text = f"Largest batch size over {len(sizes)} runs: from {number(first)} to {number(last)}"
    step = next(reversed(find_steps(find_stretches(sizes, grain=1))), None)
    return {
        "first": number(first),
        "change": "none" if first == last else percent_more(last / first - 1),
        "line": line_over_runs(sizes, text),
        "step_text": f"{percent_more(step.fraction)} with run {counted[step.index].pk}" if step else "",
        "step_fraction": step.fraction if step else 0.0,
        "is_worse": step is not None and step.fraction < 0,
    }
