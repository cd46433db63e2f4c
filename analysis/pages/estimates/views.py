"""The page of estimates: a question with its answer from what is stored, the latest ones, and how far they were off."""

from __future__ import annotations

from math import ceil
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_http_methods

from analysis.accounts.middleware import is_guest, may_be_asked, may_be_public
from analysis.accounts.rate_limit import CREATE, RateLimited, check_rate_limit, seconds_to_wait
from analysis.http.client_ip import counted_address
from analysis.models import Run, State
from analysis.pages.estimates.answer import answer
from analysis.pages.estimates.forms import QuestionForm, question_of, table_of
from analysis.pages.estimates.latest import latest_estimates
from analysis.permissions import may_read, signed_in_user
from analysis.presentation.charts.estimate_errors import error_plot
from analysis.presentation.estimate_error import Grade, groups_of
from analysis.presentation.labels import family_name, model_name, short_device_name
from analysis.runs.earlier.estimates import estimate_like, stored_estimates
from analysis.runs.services import run_create
from engine.errors import SpecError

GRADES_MAX = 500
CHART_FROM = 3
"""Measured runs from which their errors are drawn: one or two dots show no spread."""
LATEST = 20
THROTTLE = "guest"
_CACHED_SECONDS = 60
_ONLY_ASKING: dict[str, Any] = {"is_guest": True, "menu": (), "is_only_asking": True}
"""What replaces the lists for a person who may only ask: no run, no menu, no name."""


@may_be_asked
@may_be_public
@require_http_methods(["GET", "HEAD", "POST"])
def estimates(request: HttpRequest) -> HttpResponse:
    """Answer the question of the address from what is stored; a POST also starts the estimate that is missing.

    Guests may ask where MEMORYMARK_GUEST_ESTIMATES is set. They start nothing, and unless the server has public pages
    they see nothing but the answer.
    """
    if request.method == "POST":
        return _start(request, QuestionForm(question_of(request.POST)))
    form = QuestionForm(question_of(request.GET))
    if may_read(request.user):
        return _page(request, form, _lists(request, form))
    if form.given and (wait_seconds := seconds_to_wait(THROTTLE, f"address {counted_address(request)}")):
        return _too_many(request, wait_seconds)
    if is_guest(request):
        return _page(request, form, _lists(request, form))
    response = _page(request, form, _ONLY_ASKING)
    response.headers["Cache-Control"] = f"public, max-age={_CACHED_SECONDS}"  # the same for all who are not signed in
    patch_vary_headers(response, ["Cookie"])
    return response


def _page(request: HttpRequest, form: QuestionForm, more: dict[str, Any], status: int | None = None) -> HttpResponse:
    context: dict[str, Any] = {"form": form, **more}
    if form.spec is not None:
        asked, table = QueryDict(form.address), table_of(request.GET)
        context |= answer(form.spec, asked, table, is_private="is_only_asking" in more)
        context["address"] = form.address
        if not context["is_answered"] and may_read(request.user):
            context["under_way"] = estimate_like(form.spec, State.QUEUED, State.RUNNING)
    status = status or (400 if form.wrong else 200)
    return render(request, "analysis/estimates.html", context, status=status)


def _start(request: HttpRequest, form: QuestionForm) -> HttpResponse:
    user = signed_in_user(request)
    if form.spec is None:
        return _page(request, form, _lists(request, form), status=422)
    if stored_estimates(form.spec.training, form.spec.gpu) and "again" not in request.POST:
        return redirect(f"{reverse('analysis:estimates')}?{form.address}")
    if run := estimate_like(form.spec, State.QUEUED, State.RUNNING):
        return redirect(run)
    try:
        check_rate_limit(CREATE, user)
        return redirect(run_create(spec=form.spec, requested_by=user))
    except SpecError as error:
        form.refuse(error.field or "model", str(error))
        return _page(request, form, _lists(request, form), status=422)
    except RateLimited as error:
        form.refuse("limit", str(error))
        response = _page(request, form, _lists(request, form), status=429)
        response.headers["Retry-After"] = str(error.retry_after_seconds)
        return response


def _too_many(request: HttpRequest, wait_seconds: float) -> HttpResponse:
    form, seconds = QuestionForm(), ceil(wait_seconds)
    form.refuse("limit", f"too many questions within a short time; ask again in {seconds} seconds")
    response = _page(request, form, _ONLY_ASKING, status=429)
    response.headers["Retry-After"] = str(seconds)
    return response


def _lists(request: HttpRequest, form: QuestionForm) -> dict[str, Any]:
    """Return the latest estimates and, where nothing is asked, how far earlier ones were off.

    Guests of a public server see the estimates that have a result.
    """
    latest = Run.objects.for_history().estimating().defer("result", "memory_curve")
    if is_guest(request):
        latest = latest.filter(state=State.FINISHED)
    return {"latest": latest_estimates(list(latest[:LATEST])), **({} if form.given else _accuracy())}


def _accuracy() -> dict[str, Any]:
    grades = [_grade(run) for run in Run.objects.grading_estimates()[:GRADES_MAX]]
    groups = groups_of(grades)
    return {
        "shows_accuracy": True,
        "has_over": any(group.worst_peak_error > 0 for group in groups),
        "groups": groups,
        "count": len(grades),
        "is_cut": len(grades) == GRADES_MAX,
        "chart": error_plot(groups) if len(grades) >= CHART_FROM else None,
    }


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


urlpatterns = [
    path("", estimates, name="estimates"),
]
