"""The pages of one run. A view reads the request, and calls one service or renders a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from analysis.accounts.middleware import is_guest, may_be_public, refused
from analysis.accounts.rate_limit import CREATE, RateLimited, check_rate_limit
from analysis.models import Run, State
from analysis.pages.kinds import pages_of
from analysis.pages.run import context as run_page
from analysis.pages.run.chart_files import chart_file
from analysis.pages.run.live import Seen, live_context, read_live
from analysis.pages.run.share_form import share_context
from analysis.permissions import signed_in_user
from analysis.presentation.unreadable import UnreadableError
from analysis.runs import services
from engine.errors import SpecError

STOP_POLLING = 286


@may_be_public
@require_safe
def run_detail(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show one run: live, ended without a result, or its result. Guests of a public server only see results."""
    run = read_run(run_id)
    if is_guest(request) and run.state != State.FINISHED and (refusal := refused(request, run_detail)):
        return refusal
    context = run_page.run_context(run)
    if not run.is_over:
        more = live_context(read_live(run, Seen())) | {"attempts": run_page.attempts_shown(run)}
        return render(request, "analysis/run/live.html", context | more)
    return render_ended(request, run)


@require_safe
def run_live(request: HttpRequest, run_id: int) -> HttpResponse:
    """Answer the parts of a live run that changed: 204 when none did, 286 and a reload once it is over."""
    run = read_run(run_id)
    if run.is_over:
        response = HttpResponseClientRefresh()
        response.status_code = STOP_POLLING
        return response
    live = read_live(run, Seen.of(request.GET.get("seen", "")))
    if not live.is_news:
        return HttpResponse(status=204)
    return render(request, "analysis/parts/live.html", run_page.run_context(run) | live_context(live) | {"oob": True})


@require_POST
def run_cancel(request: HttpRequest, run_id: int) -> HttpResponseRedirect:
    run = read_run(run_id)
    answer = services.runs_cancel_by(run_ids={run.pk}, by=signed_in_user(request))
    if answer.not_allowed:
        messages.error(request, "Only the person who started a run, or a GPU manager, may cancel it.")
    elif not answer.done:
        messages.info(request, "This run was already over.")
    return redirect(run)


@require_POST
def run_repeat(request: HttpRequest, run_id: int) -> HttpResponseRedirect:
    run, user = read_run(run_id), signed_in_user(request)
    try:
        check_rate_limit(CREATE, user)
        only = request.POST.get("only")
        again = services.run_again(
            run=run, requested_by=user, is_timing_only=only == "timing", compares_speeds=only == "speeds"
        )
        return redirect(again)
    except RateLimited as error:
        messages.error(request, str(error))
        return redirect(run)
    except SpecError as error:
        messages.error(request, f"This run cannot be repeated: {error}")
        return redirect(f"{reverse('home')}?from={run.pk}")


@require_POST
def run_race(request: HttpRequest, run_id: int) -> HttpResponseRedirect:
    """Race the settings of a measurement on its device: what makes this training faster."""
    run, user = read_run(run_id), signed_in_user(request)
    try:
        check_rate_limit(CREATE, user)
        return redirect(services.race_start(run=run, requested_by=user))
    except (SpecError, RateLimited) as error:
        messages.error(request, f"Nothing was started: {error}")
        return redirect(f"{run.get_absolute_url()}#change")


@require_POST
def run_pin(request: HttpRequest, run_id: int) -> HttpResponseRedirect:
    run = read_run(run_id)
    is_baseline = request.POST.get("pin") == "1"
    done = services.runs_set_baseline(run_ids={run.pk}, by=signed_in_user(request), is_baseline=is_baseline)
    if done.not_allowed:
        messages.error(request, "Only the person who started a run, or a GPU manager, may pin it.")
    elif not done.done:
        messages.error(request, f"This run was not pinned: it is {done.reason}.")
    return redirect(run)


@require_safe
def run_chart(request: HttpRequest, run_id: int, key: str) -> HttpResponse:
    """Answer a chart of a result as a separate picture, in colours for print."""
    run = read_run(run_id)
    response = render(request, *chart_file(run, key), content_type="image/svg+xml")
    response.headers["Content-Disposition"] = f'attachment; filename="memorymark-run-{run.pk}-{key}.svg"'
    return response


def render_ended(request: HttpRequest, run: Run, more: Mapping[str, Any] | None = None) -> HttpResponse:
    template, page = _page_of(run, request)
    shared = share_context(run, _person(request))
    context = run_page.run_context(run) | run_page.over_context(run) | page | shared | dict(more or {})
    return render(request, template, context)


def read_run(run_id: int) -> Run:
    return get_object_or_404(Run.objects.with_places(), pk=run_id)


def _person(request: HttpRequest) -> User | None:
    return request.user if isinstance(request.user, User) else None


def _page_of(run: Run, request: HttpRequest) -> tuple[str, dict[str, Any]]:
    if run.state != State.FINISHED:
        return "analysis/run/ended.html", run_page.ended_context(run)
    try:
        if not run.result:
            raise UnreadableError("there is none")
        return pages_of(run).result_page(run, request.GET, _person(request))
    except UnreadableError as error:
        return "analysis/run/ended.html", run_page.unreadable_context(run, error)
