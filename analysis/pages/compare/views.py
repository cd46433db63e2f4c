"""The page that compares runs, and the choice of runs while fewer than two are named."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from analysis.http.query_string import BadQuery
from analysis.lists.comparison.query import (
    CHARTED_MAX,
    COMPARED_MAX,
    COMPARED_MIN,
    CompareQuery,
    carried_probe_counts,
    compared_by,
    named_ids,
    stored_runs,
)
from analysis.models import ALL_GPUS, Run, State
from analysis.pages.compare.context import compare_context
from analysis.pages.compare.races import races_context
from analysis.presentation.kinds import BY_KIND, presentation_of
from analysis.presentation.kinds.presentation import CHANGES
from analysis.presentation.run_rows import history_rows

OFFERED_MAX, READ_MAX = 20, 200


def offers(named: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the rows to choose from, those of the address chosen; `found` is what a race found, in a word."""
    by = compared_by(named)
    kinds = [kind for kind, shown in BY_KIND.items() if shown.compared_by == by and not shown.not_compared]
    chosen, models = {run.pk for run in named}, {run.model for run in named}
    newest = (
        Run.objects.for_history().filter(state=State.FINISHED).exclude(gpu=ALL_GPUS).filter(kind__in=kinds)[:READ_MAX]
    )
    others = sorted((run for run in newest if run.pk not in chosen), key=lambda run: run.model not in models)
    runs = [*named, *islice(others, OFFERED_MAX)]
    found = _found(runs) if by == CHANGES else {}
    return [
        {"row": row, "is_chosen": row.run.pk in chosen, "found": found.get(row.run.pk, "")}
        for row in history_rows(runs, {})
    ]


def _found(races: Sequence[Run]) -> dict[int, str]:
    whole = Run.objects.in_bulk([run.pk for run in races])
    return {pk: presentation_of(run).found(run) for pk, run in whole.items() if run.state == State.FINISHED}


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Compare 2 to 8 runs with charts, up to 50 as a table, or offer runs to choose; 400 for an invalid address."""
    limits = {"charted_max": CHARTED_MAX, "compared_max": COMPARED_MAX}
    try:
        if len(ids := named_ids(request.GET)) < COMPARED_MIN:
            return render(request, "analysis/compare/choice.html", {"offers": offers(stored_runs(ids)), **limits})
        query = CompareQuery.of(request.GET)
        runs = stored_runs(query.ids)
    except BadQuery as error:
        context = {"error": error, "ids_text": ", ".join(request.GET.getlist("ids"))[:400]}
        return render(request, "analysis/compare/refused.html", context | limits, status=400)
    if compared_by(runs) == CHANGES:
        return render(request, "analysis/compare/races.html", races_context(runs, query))
    return render(request, "analysis/compare/page.html", compare_context(runs, carried_probe_counts(query.ids), query))
