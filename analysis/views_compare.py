"""The page that lays runs beside each other."""

from __future__ import annotations

from django.db.models import Count, F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from analysis.comparison.asked import CHARTED_MAX, COMPARED_MAX, BadQuery, CompareQuery
from analysis.comparison.compare_page import compare_context, in_order
from analysis.content_policy import allow_inline_styles
from analysis.models import Measurement, Run


@allow_inline_styles
@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Two to eight runs with charts, up to fifty as a table. What the address asks wrongly is said, with 400."""
    try:
        query = CompareQuery.of(request.GET)
        runs = in_order(Run.objects.with_places().in_bulk(query.ids), query.ids)
    except BadQuery as error:
        context = {"error": error, "asked": ", ".join(request.GET.getlist("ids"))[:400]}
        limits = {"charted_max": CHARTED_MAX, "compared_max": COMPARED_MAX}
        return render(request, "analysis/compare_refused.html", context | limits, status=400)
    return render(request, "analysis/compare.html", compare_context(runs, _carried(query.ids), query))


def _carried(ids: tuple[int, ...]) -> dict[int, int]:
    """How many probes of each run's last attempt were measured in an earlier one."""
    carried = Measurement.objects.filter(run__in=ids, is_carried=True, attempt=F("run__attempt"))
    return dict(carried.order_by().values_list("run_id").annotate(Count("pk")))
