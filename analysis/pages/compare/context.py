"""The context of the compare page, from rows that the view has read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.lists.comparison.compared_run import ComparedRun, baseline_of, compared_run_of
from analysis.lists.comparison.differences import (
    IN_SHORT_DESCRIPTION,
    describe_sameness,
    environment_rows,
    mismatches,
    setting_rows,
    workload_groups,
)
from analysis.lists.comparison.headline import compare_headline
from analysis.lists.comparison.metrics import common_batch_size
from analysis.lists.comparison.query import CHARTED_MAX, CompareQuery
from analysis.lists.comparison.scaling import figure_rows
from analysis.lists.environment import COMPARABILITY_FACTS
from analysis.models import Run
from analysis.pages.compare.plots import compare_plots
from analysis.presentation.origin import describe_origin


def compare_context(runs: Sequence[Run], carried: Mapping[int, int], query: CompareQuery) -> dict[str, Any]:
    """`carried`: how many probes of a run an earlier attempt measured."""
    found = (compared_run_of(run, carried.get(run.pk, 0)) for run in runs)
    subjects = [replace(subject, number=number) for number, subject in enumerate(found)]
    baseline = baseline_of(subjects, query)
    has_charts = len(subjects) <= CHARTED_MAX
    plots = compare_plots(subjects, query) if has_charts else []
    compared = [subject for subject in subjects if subject.outcome is not None]
    # curves of one run alone are folded, as its figures are
    alone = [plot for plot in plots if len(compared) > 1 and len(plot.traces) == 1]
    told = facts_context(subjects, query, baseline, told_above=COMPARABILITY_FACTS)
    return {
        **told,
        **_rows(subjects, baseline, told),
        "baseline": baseline,
        "is_wide": not has_charts,
        "workloads": workload_groups(subjects),
        "mismatches": mismatches(subjects),
        "sameness": describe_sameness(subjects),
        "compared": len(compared),
        "estimated": [subject for subject in compared if subject.is_predicted],
        "common_batch_size": common_batch_size(subjects),
        "charts": [plot for plot in plots if plot not in alone],
        "charts_of_one_run": alone,
        "toggles": _toggles(query) if plots else [],
    }


def facts_context(
    subjects: Sequence[ComparedRun],
    query: CompareQuery,
    baseline: ComparedRun | None = None,
    *,
    has_baseline: bool = True,
    told_above: Collection[str] = (),
) -> dict[str, Any]:
    """Return the facts of all compared runs: heads, caveats, differences and equal settings.

    Without `has_baseline` each run is compared with itself. The page tells of the facts `told_above` by itself.
    """
    settings, facts = setting_rows(subjects), environment_rows(subjects)
    return {
        "query": query,
        "heads": [_head(subject, baseline, query, has_baseline=has_baseline) for subject in subjects],
        "caveats": _caveats(subjects),
        "without_result": [subject for subject in subjects if subject.outcome is None and not subject.caveat],
        "differing": {
            "Settings": [row for row in settings if row.differs],
            "Environment": [row for row in facts if row.differs and row.name not in told_above],
        },
        "equal_rows": [row for row in (*settings, *facts) if not row.differs],
    }


def _rows(subjects: Sequence[ComparedRun], baseline: ComparedRun | None, told: Mapping[str, Any]) -> dict[str, Any]:
    all_metrics = figure_rows(subjects, baseline)
    with_figures = [row for row in all_metrics if any(cell.is_known for cell in row.cells)]
    shared = [row for row in with_figures if sum(cell.is_known for cell in row.cells) > 1]
    metrics = shared or with_figures  # figures of one run alone are folded
    # with each run go the settings that are not the baseline's and not in its short line of settings
    unsaid = [row for row in told["differing"]["Settings"] if row.name not in IN_SHORT_DESCRIPTION]
    base = next((place for place, each in enumerate(told["heads"]) if each["is_baseline"]), 0)
    lines = [
        (
            each,
            [row.cells[index] for row in metrics],
            [(row.name, row.values[index]) for row in unsaid if row.values[index] != row.values[base]],
        )
        for index, each in enumerate(told["heads"])
    ]
    return {
        "headline": compare_headline(subjects, baseline, all_metrics),
        "metrics": metrics,
        "of_one_run": [row for row in with_figures if row not in metrics],
        "without_figures": [row.name for row in all_metrics if row not in with_figures],
        "has_differences": any(cell.delta for row in metrics for cell in row.cells),
        "lines": lines,
    }


def _toggles(query: CompareQuery) -> list[dict[str, Any]]:
    axes = (("Batch axis", "x", query.x), ("Figure axis", "y", query.y))
    return [
        {"axis": title, "word": word, "address": query.address(**{name: word}), "is_on": word == now}
        for title, name, now in axes
        for word in ("log", "linear")
    ]


def _caveats(subjects: Sequence[ComparedRun]) -> list[tuple[list[ComparedRun], str]]:
    runs: dict[str, list[ComparedRun]] = {}
    for subject in subjects:
        if subject.caveat:
            runs.setdefault(subject.caveat, []).append(subject)
    return [(having, caveat) for caveat, having in runs.items()]


def _head(
    subject: ComparedRun, baseline: ComparedRun | None, query: CompareQuery, *, has_baseline: bool
) -> dict[str, Any]:
    """Give a run's name, its swatch and its two links."""
    rest = tuple(run_id for run_id in query.ids if run_id != subject.run_id)
    still_baseline = query.baseline if query.baseline in rest else None
    return {
        "subject": subject,
        "label": f"≈ {subject.name}" if subject.is_predicted else subject.name,
        "origin": describe_origin(subject.run),
        "is_baseline": subject is baseline,
        "swatch_class": subject.look.classes(is_predicted=subject.is_predicted),
        "marker_path": subject.look.marker_path,
        "as_baseline": query.address(baseline=subject.run_id) if has_baseline else "",
        "without": query.address(ids=rest, baseline=still_baseline) if len(rest) > 1 else "",
    }
