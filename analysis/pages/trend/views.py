"""The page that follows one workload on one card over time, and the note on a step of it."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from analysis.formatting import round_percent
from analysis.http.query_string import BadQuery
from analysis.lists.trend.query import (
    LOOKED_THROUGH_MAX,
    SAMPLES_MAX,
    TrendForm,
    acknowledgements_of,
    ids_of_series,
    measured_runs,
    newest_measured,
    samples_of,
)
from analysis.lists.trend.series import METRICS
from analysis.lists.trend.step_detection import POINTS_PER_SIDE_MIN, THRESHOLD
from analysis.models import Run
from analysis.pages.trend.choice import known_series
from analysis.pages.trend.context import trend_context
from analysis.permissions import signed_in_user
from analysis.runs import services
from analysis.runs.columns.series import SeriesKey


@require_safe
def trend(request: HttpRequest) -> HttpResponse:
    if not request.GET:
        series, more = known_series(newest_measured(LOOKED_THROUGH_MAX))
        context = {
            "series": series,
            "has_speeds": any(one["speed"] for one in series),
            "more": more,
            "looked_at": LOOKED_THROUGH_MAX,
            "points_needed": POINTS_PER_SIDE_MIN,
            "threshold": round_percent(THRESHOLD),
        }
        return render(request, "analysis/trend/choice.html", context)
    try:
        query = TrendForm.read(request.GET).series
    except BadQuery as error:
        refused = {"error": error, "what": "trend", "instead": "Choose a series"}
        return render(request, "analysis/refused.html", refused, status=400)
    ids = ids_of_series(query)
    samples = samples_of(ids[:SAMPLES_MAX])
    context = trend_context(query, samples, acknowledgements_of(ids), is_cut=len(ids) > SAMPLES_MAX)
    return render(request, "analysis/trend/page.html", context)


@require_POST
def trend_acknowledge(request: HttpRequest, run_id: int) -> HttpResponseRedirect:
    run = get_object_or_404(measured_runs(), pk=run_id)
    metric, note = request.POST.get("metric", ""), request.POST.get("note", "").strip()
    if metric not in METRICS or not note:
        messages.error(request, "The note was not saved: describe the step briefly.")
    else:
        _note(request, run, metric, note)
    return redirect(reverse("analysis:trend") + SeriesKey.of_run(run.spec, run.device_name).address)


def _note(request: HttpRequest, run: Run, metric: str, note: str) -> None:
    try:
        if services.step_acknowledge(run=run, metric=metric, note=note, acknowledged_by=signed_in_user(request)):
            return
        reason = "the existing note is another person’s; only they or a GPU manager can replace it"
    except ValidationError as error:
        reason = f"a note {' '.join(error.messages)}"
    messages.error(request, f"The note was not saved: {reason}.")
