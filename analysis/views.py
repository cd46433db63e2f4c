"""The HTML pages. A view reads the request, asks querysets and presentation, and ends in one service call or a page."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Exists, OuterRef, Prefetch
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from analysis import services
from analysis.content_policy import allow_inline_styles
from analysis.forecast import turns
from analysis.forms import RunForm, first_values, values_of
from analysis.models import Device, Run, State
from analysis.placement import placement_of
from analysis.presentation import pages
from analysis.presentation.devices import device_cards
from analysis.presentation.history import history_rows, with_limit
from analysis.querysets import DeviceQuerySet
from engine.errors import SpecError
from engine.spec import CPU_DEFAULT_LIMIT_BYTES, RunSpec

RECENT_RUNS = 10
RUNS_PER_PAGE = 25
STOP_POLLING = 286


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The form, the devices and the latest runs. `?from=<run>` fills the form with that run's settings."""
    devices = list(_devices_offered(request))
    source = request.GET.get("from", "")
    run = Run.objects.filter(pk=source).first() if source.isdecimal() and len(source) < 19 else None
    initial = values_of(run) if run else first_values(devices)
    return _home_page(request, RunForm(devices=devices, initial=initial))


@require_http_methods(["GET", "HEAD", "POST"])
def run_create(request: HttpRequest) -> HttpResponse:
    """Store a run, or show the form again with what is wrong. Nothing is stored on an error."""
    if request.method != "POST":
        return redirect("home")
    form = RunForm(request.POST, devices=_devices_offered(request))
    if form.is_valid():
        try:
            run = services.run_create(**form.submission(), requested_by=request.user)
            return redirect(run)
        except SpecError as error:
            form.add_spec_error(error)
    return _home_page(request, form, status=422)


@require_safe
def device_list(request: HttpRequest) -> HttpResponse:
    """The devices part of the home page, polled."""
    return render(request, "analysis/parts/devices.html", {"cards": device_cards(_devices_with_open_runs())})


@require_safe
def run_list(request: HttpRequest) -> HttpResponse:
    """All runs, newest first, in numbered pages."""
    page = Paginator(with_limit(Run.objects.for_history()), RUNS_PER_PAGE).get_page(request.GET.get("page"))
    pages_shown = page.paginator.get_elided_page_range(page.number, on_each_side=2, on_ends=1)
    return render(
        request, "analysis/runs.html", {"page": page, "rows": history_rows(page, turns(page)), "pages": pages_shown}
    )


@allow_inline_styles
@require_safe
def run_detail(request: HttpRequest, run_id: int) -> HttpResponse:
    """One run: live, ended without a result, or its answer."""
    run = _run(run_id)
    template, build = _page_of(run)
    context = pages.run_context(run) | {"attempts": pages.attempts_shown(run)}
    return render(request, template, context | build(run))


@require_safe
def run_live(request: HttpRequest, run_id: int) -> HttpResponse:
    """The moving parts of a live run: 204 when nothing changed, 286 and a reload once it is over."""
    run = _run(run_id)
    if run.is_over:
        response = HttpResponseClientRefresh()
        response.status_code = STOP_POLLING
        return response
    live = pages.live_context(run)
    if request.GET.get("seen") == live["seen"]:
        return HttpResponse(status=204)
    return render(request, "analysis/parts/live.html", pages.run_context(run) | live | {"oob": True})


@require_POST
def run_cancel(request: HttpRequest, run_id: int) -> HttpResponseRedirect:
    """Ask a run to stop."""
    run = _run(run_id)
    if not services.run_cancel(run_id=run.pk):
        messages.info(request, "This run was already over.")
    return redirect(run)


@require_POST
def run_repeat(request: HttpRequest, run_id: int) -> HttpResponseRedirect:
    """The same spec in the same place, as a new run."""
    run = _run(run_id)
    try:
        again = services.run_create(
            spec=RunSpec.from_dict(run.spec),
            place=placement_of(run),
            requested_by=request.user,
            priority=min(run.priority, Run.Priority.NORMAL),
            accepts_shared_device=run.accepts_shared_device,
            uses_device_price=run.uses_device_price,
        )
        return redirect(again)
    except SpecError as error:
        messages.error(request, f"This run cannot be repeated as it was: {error}")
        return redirect(f"{reverse('home')}?from={run.pk}")


def _home_page(request: HttpRequest, form: RunForm, status: int = 200) -> HttpResponse:
    devices = _devices_with_open_runs()
    recent = list(with_limit(Run.objects.for_history())[:RECENT_RUNS])
    context: dict[str, Any] = {
        "form": form,
        "more_is_open": any(name in form.errors for name in RunForm.MORE),
        "cards": device_cards(devices),
        "may_start": bool(form.places),
        "has_only_cpu": bool(devices) and all(device.kind == "cpu" for device in devices),
        "cpu_default_limit_bytes": CPU_DEFAULT_LIMIT_BYTES,
        "rows": history_rows(recent, turns(recent)),
    }
    return render(request, "analysis/home.html", context, status=status)


def _enabled_devices() -> DeviceQuerySet:
    return Device.objects.enabled().select_related("host").best_first()


def _devices_offered(request: HttpRequest) -> DeviceQuerySet:
    return _enabled_devices().allowing(request.user)


def _devices_with_open_runs() -> list[Device]:
    """Enabled devices, with what `presentation.devices` shows of each."""
    takes_runs = Exists(Device.objects.taking_runs().filter(pk=OuterRef("pk")))
    running = Run.objects.running().only("pk", "device_id")
    waiting = Run.objects.queued().only("pk", "asks_device_id")
    return list(
        _enabled_devices()
        .annotate(takes_runs=takes_runs)
        .prefetch_related(
            Prefetch("runs", running, to_attr="running_runs"),
            Prefetch("runs_asking_for_it", waiting, to_attr="waiting_runs"),
        )
    )


def _run(run_id: int) -> Run:
    return get_object_or_404(Run.objects.with_places(), pk=run_id)


def _page_of(run: Run) -> tuple[str, Any]:
    if not run.is_over:
        return "analysis/run_live.html", pages.live_context
    if run.state == State.FINISHED and run.result:
        return "analysis/run_result.html", pages.result_context
    return "analysis/run_ended.html", pages.ended_context
