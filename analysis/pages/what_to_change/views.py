"""What to change so that a batch size fits. Estimates and measurements are queued; a request computes neither."""

from __future__ import annotations

from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.views.decorators.http import require_http_methods, require_POST

from analysis.accounts.rate_limit import CREATE, RateLimited, check_rate_limit
from analysis.lists.runs.columns import RECENT
from analysis.models import Device, Run, State
from analysis.pages.form_choices import places_offered
from analysis.pages.run_table import run_table
from analysis.pages.spec_form import start_run
from analysis.pages.what_to_change.context import ChangesForm, NewChangesForm, WhereForm, changes_context
from analysis.permissions import signed_in_user
from analysis.presentation.kinds import settings_of_run
from analysis.presentation.run_rows import history_rows
from analysis.runs import services
from engine.errors import SpecError

LATEST = 10


@require_http_methods(["GET", "HEAD", "POST"])
def overview(request: HttpRequest) -> HttpResponse:
    """Show the newest answer for a model and a card, and the form that asks for another."""
    if request.method == "POST":
        form = NewChangesForm(request.POST)
        return start_run(request, form, partial(_page, request, form, {}))
    where = WhereForm(request.GET)
    given = {} if where.problems else where.cleaned_data
    wanted = {name: value for name in ("model", "gpu") if (value := given.get(name))}
    form = NewChangesForm(initial={"model": "bert", "gpu": "t4", "batch_size": 256, **wanted})
    return _page(request, form, wanted, status=400 if where.problems else 200, where=where)


def _page(
    request: HttpRequest,
    form: NewChangesForm,
    wanted: dict[str, str],
    status: int = 200,
    where: WhereForm | None = None,
) -> HttpResponse:
    made = Run.objects.answering().filter(**wanted)
    newest = made.filter(state=State.FINISHED).order_by("-pk").first() if len(wanted) == 2 else None
    table = run_table(history_rows(made.for_history().defer("result", "memory_curve")[:LATEST], {}), RECENT)
    context = {"form": form, "table": table, "newest": newest, "is_chosen": len(wanted) == 2, "where": where}
    if newest is not None:
        context |= changes_context(newest, signed_in_user(request))
        context["newest_settings"] = settings_of_run(newest)
    return render(request, "analysis/what_to_change.html", context, status=status)


@require_POST
def changes_estimate(request: HttpRequest, run_id: int) -> HttpResponseRedirect:
    run = _run(run_id)
    form = ChangesForm(request.POST)
    if not form.is_valid():
        return _refused(request, run, "; ".join(str(text) for texts in form.errors.values() for text in texts))
    user = signed_in_user(request)
    try:
        check_rate_limit(CREATE, user)
        size, scope = form.cleaned_data["batch_size"], form.cleaned_data["scope"]
        return redirect(services.changes_estimate(run=run, batch_size=size, scope=scope, requested_by=user))
    except (SpecError, RateLimited) as error:
        return _refused(request, run, str(error))


@require_POST
def changes_measure(request: HttpRequest, run_id: int) -> HttpResponseRedirect:
    run, user = _run(run_id), signed_in_user(request)
    place = places_offered(Device.objects.enabled().allowing(user)).get(request.POST.get("device", ""))
    if place is None:
        return _refused(request, run, "device: choose one that is offered")
    try:
        check_rate_limit(CREATE, user)
        started = services.changes_measure(
            run=run, labels=request.POST.getlist("variant"), place=place[1], requested_by=user
        )
    except (SpecError, RateLimited) as error:
        return _refused(request, run, str(error))
    if len(started) == 1:
        return redirect(started[0])
    links = format_html_join(", ", '<a href="{}">run {}</a>', ((each.get_absolute_url(), each.pk) for each in started))
    messages.success(request, format_html("Queued: {}.", links))
    return redirect(f"{reverse('analysis:runs')}?model={run.model}&kind=measurement")


def _refused(request: HttpRequest, run: Run, reason: str) -> HttpResponseRedirect:
    messages.error(request, f"Nothing was started: {reason}")
    return redirect(f"{run.get_absolute_url()}#what-to-change")


def _run(run_id: int) -> Run:
    return get_object_or_404(Run.objects.with_places(), pk=run_id)
