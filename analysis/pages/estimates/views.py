"""The page of estimates: a question with its answer from what is stored, the latest ones, and how far they were off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_http_methods

from analysis.accounts.middleware import is_guest, may_be_asked, may_be_public
from analysis.accounts.rate_limit import CREATE, RateLimited, check_rate_limit, seconds_to_wait
from analysis.formatting import bytes_text
from analysis.http.client_ip import counted_address
from analysis.models import MatrixCell, Run, State
from analysis.pages.estimates.answer import answer
from analysis.pages.estimates.forms import QuestionForm, question_of, table_of
from analysis.permissions import may_read, signed_in_user
from analysis.presentation.estimate_error import error_plot, groups_of
from analysis.presentation.run_rows import HistoryRow, history_rows
from analysis.runs.columns.matrix_cells import ESTIMATED
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


@dataclass(frozen=True, slots=True)
class LatestEstimate:
    """A row; `smallest` is the cell with the least memory that fits today's batch size, if the matrix has one."""

    row: HistoryRow
    smallest: MatrixCell | None = None

    @property
    def batch_size(self) -> int | None:
        size: int | None = self.row.run.spec.get("current_batch_size")
        return size

    @property
    def fits(self) -> str:
        """Write "9 of 34 GPUs", for one GPU whether the size fits; empty before there is an answer."""
        run = self.row.run
        if self.row.cards:
            return self.row.cards
        if run.estimated_safe_batch_size is None or self.batch_size is None:
            return ""
        outcome = "fits" if run.estimated_safe_batch_size >= self.batch_size else "does not fit"
        return f"{self.row.device_name}: {outcome}"

    @property
    def smallest_text(self) -> str:
        return f"{self.smallest.card_name}, {bytes_text(self.smallest.memory_bytes)}" if self.smallest else ""

    @property
    def size(self) -> int | None:
        return self.smallest.shown_batch_size if self.smallest else self.row.run.estimated_safe_batch_size


def latest_estimates(runs: Sequence[Run]) -> list[LatestEstimate]:
    by_id = {run.pk: run for run in runs if run.estimated_cards_that_fit}
    smallest: dict[int, MatrixCell] = {}
    cells = MatrixCell.objects.filter(run__in=list(by_id), kind=ESTIMATED)
    for cell in sorted(cells, key=lambda each: (each.memory_bytes, each.card)):
        if (cell.shown_batch_size or 0) >= (by_id[cell.run_id].spec.get("current_batch_size") or 1):
            smallest.setdefault(cell.run_id, cell)
    return [LatestEstimate(row, smallest.get(row.run.pk)) for row in history_rows(runs, {})]


@may_be_asked
@may_be_public
@require_http_methods(["GET", "HEAD", "POST"])
def estimates(request: HttpRequest) -> HttpResponse:
    """Answer the question of the address from stored runs; a POST also starts the missing estimate.

    Guests may ask where MEMORYMARK_GUEST_ESTIMATES is set: they start nothing, and without public pages see no more.
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
    """Return the latest estimates (guests: those with a result) and, without a question, the errors of earlier ones."""
    latest = Run.objects.for_history().estimating().defer("result", "memory_curve")
    if is_guest(request):
        latest = latest.filter(state=State.FINISHED)
    return {"latest": latest_estimates(list(latest[:LATEST])), **({} if form.given else _accuracy())}


def _accuracy() -> dict[str, Any]:
    graded = list(Run.objects.grading_estimates()[:GRADES_MAX])
    groups = groups_of(graded)
    return {
        "shows_accuracy": True,
        "has_over": any(group.worst_peak_error > 0 for group in groups),
        "groups": groups,
        "count": len(graded),
        "is_cut": len(graded) == GRADES_MAX,
        "chart": error_plot(groups) if len(graded) >= CHART_FROM else None,
    }


urlpatterns = [
    path("", estimates, name="estimates"),
]
