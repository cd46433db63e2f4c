"""Reads the runs that are compared out of the database, for the page and the API."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Count, F

from analysis.http.query_string import BadQuery, QueryProblem
from analysis.models import Measurement, Run
from analysis.presentation.kinds import presentation_of
from analysis.presentation.kinds.presentation import BATCH_SIZES


def stored_runs(ids: tuple[int, ...]) -> list[Run]:
    """In the requested order. Raises BadQuery for one that is not stored, and for runs that have nothing in common."""
    runs = Run.objects.with_places().in_bulk(ids)
    missing = [str(run_id) for run_id in ids if run_id not in runs]
    if missing:
        raise BadQuery(QueryProblem("ids", f"there is no run {', '.join(missing[:10])}"))
    reasons = {run_id: presentation_of(runs[run_id]).not_compared for run_id in ids}
    if refused := [run_id for run_id, reason in reasons.items() if reason]:
        which = f"run {', '.join(map(str, refused[:10]))}"
        raise BadQuery(QueryProblem("ids", f"{which} is {reasons[refused[0]]}"))
    by = {presentation_of(runs[run_id]).compared_by: run_id for run_id in reversed(ids)}
    if len(by) > 1:
        which = ", ".join(f"run {run_id} has {what}" for what, run_id in sorted(by.items(), key=lambda each: each[1]))
        raise BadQuery(QueryProblem("ids", f"{which}: they cannot be compared with each other"))
    return [runs[run_id] for run_id in ids]


def compared_by(runs: Sequence[Run]) -> str:
    return presentation_of(runs[0]).compared_by if runs else BATCH_SIZES


def batch_sizes_only(runs: list[Run]) -> list[Run]:
    """Return these runs if they are compared by batch sizes. Raises BadQuery for races."""
    if (by := compared_by(runs)) != BATCH_SIZES:
        raise BadQuery(QueryProblem("ids", f"run {runs[0].pk} has {by} to compare, and no batch size"))
    return runs


def carried_probe_counts(ids: tuple[int, ...]) -> dict[int, int]:
    carried = Measurement.objects.filter(run__in=ids, is_carried=True, attempt=F("run__attempt"))
    return dict(carried.order_by().values_list("run_id").annotate(Count("pk")))
