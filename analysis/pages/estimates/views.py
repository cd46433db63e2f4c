"""The page of estimates: the latest ones, and how far estimates were from later measurements."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from analysis.accounts.middleware import is_guest, may_be_public
from analysis.models import Run, State
from analysis.presentation.charts import chart_of
from analysis.presentation.charts.estimate_errors import error_plot
from analysis.presentation.estimate_error import Grade, groups_of
from analysis.presentation.labels import family_name, model_name, short_device_name
from analysis.presentation.run_rows import history_rows

GRADES_MAX = 500
LATEST = 20


@may_be_public
@require_safe
def estimates(request: HttpRequest) -> HttpResponse:
    """Show the latest estimates, then the errors by GPU and family of models over time, of the latest measured runs.

    Guests of a public server see the estimates that have a result.
    """
    latest = Run.objects.for_history().estimating().defer("result", "memory_curve")
    if is_guest(request):
        latest = latest.filter(state=State.FINISHED)
    grades = [_grade(run) for run in Run.objects.grading_estimates()[:GRADES_MAX]]
    groups = groups_of(grades)
    plot = error_plot(groups)
    context = {"groups": groups, "count": len(grades), "is_cut": len(grades) == GRADES_MAX}
    context["rows"] = history_rows(latest[:LATEST], {})
    return render(request, "analysis/estimates.html", context | {"chart": chart_of(plot) if plot else None})


def _grade(run: Run) -> Grade:
    assert run.finished_at is not None  # `grading_estimates` leaves out runs without either
    assert run.estimate_peak_error is not None
    return Grade(
        run_id=run.pk,
        finished_at=run.finished_at,
        gpu=short_device_name(run.device_name),
        family=family_name(run.model),
        model=model_name(run.model),
        peak_error=run.estimate_peak_error,
        boundary_error=run.estimate_boundary_error,
        is_calibrated=run.estimate_is_calibrated,
    )
