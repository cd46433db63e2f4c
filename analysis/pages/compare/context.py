"""The context of the compare page, from rows that the view has read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from analysis.pages.compare.heads import caveats, head
from analysis.pages.compare.plots import compare_plots


def compare_context(runs: Sequence[Run], carried: Mapping[int, int], query: CompareQuery) -> dict[str, Any]:
    """`carried`: how many probes of a run an earlier attempt measured."""
    found = (compared_run_of(run, carried.get(run.pk, 0)) for run in runs)
    subjects = [replace(subject, number=number) for number, subject in enumerate(found)]
    baseline = baseline_of(subjects, query)
    has_charts = len(subjects) <= CHARTED_MAX
    plots = compare_plots(subjects, query) if has_charts else []
    # a curve that one run has alone compares nothing: it is folded, as its figures are
    is_several = sum(subject.outcome is not None for subject in subjects) > 1
    alone = [plot for plot in plots if is_several and len(plot.traces) == 1]
    heads = [head(subject, baseline, query) for subject in subjects]
    return {
        "query": query,
        "heads": heads,
        "baseline": baseline,
        "is_wide": not has_charts,
        "workloads": workload_groups(subjects),
        "mismatches": mismatches(subjects),
        "sameness": describe_sameness(subjects),
        "compared": sum(subject.outcome is not None for subject in subjects),
        "estimated": [subject for subject in subjects if subject.is_predicted and subject.outcome],
        "caveats": caveats(subjects),
        "without_result": [subject for subject in subjects if subject.outcome is None and not subject.caveat],
        "common_batch_size": common_batch_size(subjects),
        **_rows(subjects, baseline, heads),
        "charts": [plot for plot in plots if plot not in alone],
        "charts_of_one_run": alone,
        "toggles": _toggles(query) if plots else [],
    }


def _rows(subjects: Sequence[ComparedRun], baseline: ComparedRun | None, heads: Sequence[Any]) -> dict[str, Any]:
    all_metrics = figure_rows(subjects, baseline)
    with_figures = [row for row in all_metrics if any(cell.is_known for cell in row.cells)]
    shared = [row for row in with_figures if sum(cell.is_known for cell in row.cells) > 1]
    metrics = shared or with_figures  # a figure that one run has alone compares nothing: it is folded
    settings, facts = setting_rows(subjects), environment_rows(subjects)
    differing = [row for row in settings if row.differs]
    # with each run go the settings that are not the baseline's and not in its short line of settings
    unsaid = [row for row in differing if row.name not in IN_SHORT_DESCRIPTION]
    base = next((place for place, each in enumerate(heads) if each["is_baseline"]), 0)
    lines = [
        (
            each,
            [row.cells[index] for row in metrics],
            [(row.name, row.values[index]) for row in unsaid if row.values[index] != row.values[base]],
        )
        for index, each in enumerate(heads)
    ]
    return {
        "headline": compare_headline(subjects, baseline, all_metrics),
        "metrics": metrics,
        "of_one_run": [row for row in with_figures if row not in metrics],
        "without_figures": [row.name for row in all_metrics if row not in with_figures],
        "has_differences": any(cell.delta for row in metrics for cell in row.cells),
        "lines": lines,
        "differing_settings": differing,
        "differing_facts": [row for row in facts if row.differs and row.name not in COMPARABILITY_FACTS],
        "equal_rows": [row for row in (*settings, *facts) if not row.differs],
    }


def _toggles(query: CompareQuery) -> list[dict[str, Any]]:
    axes = (("Batch axis", "x", query.x), ("Figure axis", "y", query.y))
    return [
        {"axis": title, "word": word, "address": query.address(**{name: word}), "is_on": word == now}
        for title, name, now in axes
        for word in ("log", "linear")
    ]
