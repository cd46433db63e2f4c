"""The page that compares runs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from analysis.http.query_string import BadQuery
from analysis.pages.compare.context import compare_context
from analysis.pages.compare.load import carried_probe_counts, compared_runs
from analysis.pages.compare.query import CHARTED_MAX, COMPARED_MAX, CompareQuery


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Compare two to eight runs with charts, up to fifty as a table. An invalid address gets a 400 with the reason."""
    try:
        query = CompareQuery.of(request.GET)
        runs = compared_runs(query)
    except BadQuery as error:
        context = {"error": error, "ids_text": ", ".join(request.GET.getlist("ids"))[:400]}
        limits = {"charted_max": CHARTED_MAX, "compared_max": COMPARED_MAX}
        return render(request, "analysis/compare_refused.html", context | limits, status=400)
    return render(request, "analysis/compare.html", compare_context(runs, carried_probe_counts(query.ids), query))
