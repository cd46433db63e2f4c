"""The page that compares runs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from analysis.http.query_string import BadQuery
from analysis.lists.comparison.load import carried_probe_counts, compared_by, stored_runs
from analysis.lists.comparison.query import CHARTED_MAX, COMPARED_MAX, COMPARED_MIN, CompareQuery, named_ids
from analysis.pages.compare.context import compare_context
from analysis.pages.compare.picker import offers
from analysis.pages.compare.races import races_context
from analysis.presentation.kinds.presentation import CHANGES


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Compare two to eight runs with charts, up to fifty as a table; with fewer, offer runs to choose from.

    An invalid address gets a 400 with the reason.
    """
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
