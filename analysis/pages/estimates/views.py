"""The page of the errors of estimates, compared with later measurements."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from analysis.accounts.middleware import may_be_public
from analysis.models import Run
from analysis.presentation.charts import chart_of
from analysis.presentation.charts.estimate_errors import error_plot
from analysis.presentation.estimate_error import Grade, groups_of
from analysis.presentation.labels import family_name, model_name, short_device_name

GRADES_MAX = 500


@may_be_public
@require_safe
def estimates(request: HttpRequest) -> HttpResponse:
    """Show the errors by GPU and family of models over time, of the latest measured runs with an estimate."""
    grades = [_grade(run) for run in Run.objects.grading_estimates()[:GRADES_MAX]]
    groups = groups_of(grades)
    plot = error_plot(groups)
    context = {"groups": groups, "count": len(grades), "is_cut": len(grades) == GRADES_MAX}
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
