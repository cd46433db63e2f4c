"""The context of the compare page, from rows that the view has read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.http.query_string import BadQuery, QueryProblem
from analysis.models import Run
from analysis.pages.compare.compared_run import ComparedRun, compared_run_of
from analysis.pages.compare.differences import (
    IN_SHORT_DESCRIPTION,
    Row,
    describe_sameness,
    environment_rows,
    mismatches,
    setting_rows,
    workload_groups,
)
from analysis.pages.compare.environment import COMPARABILITY_FACTS
from analysis.pages.compare.metrics import MetricRow, common_batch_size, metric_rows
from analysis.pages.compare.plots import compare_plots
from analysis.pages.compare.query import CHARTED_MAX, CompareQuery
from analysis.presentation.charts import chart_of
from analysis.presentation.origin import describe_origin


@dataclass(frozen=True, slots=True)
class Toggle:
    """One choice of an axis: what it is called, where it leads, whether it is in force."""

    axis: str
    word: str
    address: str
    is_on: bool


def in_order(runs: Mapping[int, Run], ids: Sequence[int]) -> list[Run]:
    """Put the runs in the order of the address; one that is not stored is refused by its number."""
    missing = [str(run_id) for run_id in ids if run_id not in runs]
    if missing:
        raise BadQuery(QueryProblem("ids", f"there is no run {', '.join(missing[:10])}"))
    if validations := [str(run_id) for run_id in ids if runs[run_id].is_validation]:
        which = f"run {', '.join(validations[:10])}"
        raise BadQuery(QueryProblem("ids", f"{which} is a validation, which has no batch size to compare"))
    return [runs[run_id] for run_id in ids]


def compare_context(runs: Sequence[Run], carried: Mapping[int, int], query: CompareQuery) -> dict[str, Any]:
    """`carried`: how many probes of a run an earlier attempt measured."""
    subjects = [compared_run_of(run, carried.get(run.pk, 0)) for run in runs]
    baseline = baseline_of(subjects, query)
    has_charts = len(subjects) <= CHARTED_MAX
    plots = compare_plots(subjects, query) if has_charts else []
    heads = [_head(subject, baseline, query) for subject in subjects]
    return {
        "query": query,
        "heads": heads,
        "baseline": baseline,
        "is_wide": not has_charts,
        "workloads": workload_groups(subjects),
        "mismatches": mismatches(subjects),
        "sameness": describe_sameness(subjects),
        "compared": sum(subject.outcome is not None for subject in subjects),
        "estimated": [subject for subject in subjects if subject.is_estimate and subject.outcome],
        "caveats": [subject for subject in subjects if subject.caveat],
        "without_result": [subject for subject in subjects if subject.outcome is None and not subject.caveat],
        "common_batch_size": common_batch_size(subjects),
        **_rows(subjects, baseline, heads),
        "charts": [chart_of(plot) for plot in plots],
        "toggles": _toggles(query) if plots else [],
    }


def baseline_of(subjects: Sequence[ComparedRun], query: CompareQuery) -> ComparedRun | None:
    """Choose the one that was named, else the first that has figures, before reported ones that nobody trusts."""
    if query.baseline is not None:
        return next(subject for subject in subjects if subject.run_id == query.baseline)
    ordered = sorted(subjects, key=lambda subject: not subject.run.is_trusted)
    return next((subject for subject in ordered if subject.outcome), None)


def _head(subject: ComparedRun, baseline: ComparedRun | None, query: CompareQuery) -> dict[str, Any]:
    """Give a run's name, its swatch, and where its two links lead. Of two runs, the least, none can be left out."""
    rest = tuple(run_id for run_id in query.ids if run_id != subject.run_id)
    still_baseline = query.baseline if query.baseline in rest else None
    return {
        "subject": subject,
        "origin": describe_origin(subject.run),
        "is_baseline": subject is baseline,
        "swatch_class": subject.look.classes(is_estimate=subject.is_estimate),
        "marker_path": subject.look.marker_path,
        "as_baseline": query.address(baseline=subject.run_id),
        "without": query.address(ids=rest, baseline=still_baseline) if len(rest) > 1 else "",
    }


def _rows(subjects: Sequence[ComparedRun], baseline: ComparedRun | None, heads: Sequence[Any]) -> dict[str, Any]:
    """Return the tables; `lines` is the one of many runs, turned around: a run a line."""
    metrics = metric_rows(subjects, baseline)
    settings, facts = setting_rows(subjects), environment_rows(subjects)
    differing = [row for row in settings if row.differs]
    return {
        "metrics": metrics,
        "has_differences": any(cell.delta for row in metrics for cell in row.cells),
        "lines": [_line(index, heads, metrics, differing) for index in range(len(heads))],
        "differing_settings": differing,
        "differing_facts": [row for row in facts if row.differs and row.name not in COMPARABILITY_FACTS],
        "equal_rows": [row for row in (*settings, *facts) if not row.differs],
    }


def _line(index: int, heads: Sequence[Any], metrics: Sequence[MetricRow], differing: Sequence[Row]) -> tuple[Any, ...]:
    """Return a run, its cells, and the settings that are not the baseline's and not in its short line of settings."""
    base = next((place for place, head in enumerate(heads) if head["is_baseline"]), 0)
    unsaid = [
        row for row in differing if row.name not in IN_SHORT_DESCRIPTION and row.values[index] != row.values[base]
    ]
    return heads[index], [row.cells[index] for row in metrics], [(row.name, row.values[index]) for row in unsaid]


def _toggles(query: CompareQuery) -> list[Toggle]:
    axes = (("Batch axis", "x", query.x), ("Figure axis", "y", query.y))
    return [
        Toggle(title, word, query.address(**{name: word}), word == now)
        for title, name, now in axes
        for word in ("log", "linear")
    ]
