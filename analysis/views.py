"""The HTML pages. A view reads the request, asks querysets and presentation, and ends in one service call or a page."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from analysis import services
from analysis.content_policy import allow_inline_styles
from analysis.forms import RunForm, first_values, values_of
from analysis.models import Device, Run, State
from analysis.presentation import pages
from analysis.presentation.devices import device_cards
from analysis.presentation.history import history_rows, with_limit
from engine.errors import SpecError
from engine.spec import CPU_DEFAULT_LIMIT_BYTES, RunSpec

RECENT_RUNS = 10
RUNS_PER_PAGE = 25
STOP_POLLING = 286


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The form, the devices and the latest runs. `?from=<run>` fills the form with that run's settings."""
    devices = _enabled_devices()
    source = request.GET.get("from", "")
    run = Run.objects.filter(pk=source).first() if source.isdecimal() and len(source) < 19 else None
    initial = values_of(run) if run else first_values(devices)
    return _home_page(request, RunForm(devices=devices, initial=initial))


@require_http_methods(["GET", "HEAD", "POST"])
def run_create(request: HttpRequest) -> HttpResponse:
    """Store a run, or show the form again with what is wrong. Nothing is stored on an error."""
    if request.method != "POST":
        return redirect("home")
    form = RunForm(request.POST, devices=_enabled_devices())
    if form.is_valid():
        try:
            run = services.run_create(spec=form.spec, device=form.cleaned_data["device"], requested_by=request.user)
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
    return render(request, "analysis/runs.html", {"page": page, "rows": history_rows(page), "pages": pages_shown})


@allow_inline_styles
@require_safe
def run_detail(request: HttpRequest, run_id: int) -> HttpResponse:
    """One run: live, ended without a result, or its answer."""
    run = _run(run_id)
    template, build = _page_of(run)
    return render(request, template, pages.run_context(run) | build(run))


@require_safe
def run_live(request: HttpRequest, run_id: int) -> HttpResponse:
    """The moving parts of a live run: 204 when nothing changed, 286 and a reload once it is over."""
    run = _run(run_id)
    if run.is_over:
        response = HttpResponseClientRefresh()
        response.status_code = STOP_POLLING
        return response
    if request.GET.get("seen") == pages.seen(run):
        return HttpResponse(status=204)
    return render(request, "analysis/parts/live.html", pages.run_context(run) | pages.live_context(run) | {"oob": True})


@require_POST
def run_cancel(request: HttpRequest, run_id: int) -> HttpResponseRedirect:
    """Ask a run to stop."""
    run = _run(run_id)
    if not services.run_cancel(run_id=run.pk):
        messages.info(request, "This run was already over.")
    return redirect(run)


@require_POST
def run_repeat(request: HttpRequest, run_id: int) -> HttpResponseRedirect:
    """The same spec on the same device, as a new run."""
    run = _run(run_id)
    try:
        spec = RunSpec.from_dict(run.spec)
        return redirect(services.run_create(spec=spec, device=run.device, requested_by=request.user))
    except SpecError as error:
        messages.error(request, f"This run cannot be repeated as it was: {error}")
        return redirect(f"{reverse('home')}?from={run.pk}")


def _home_page(request: HttpRequest, form: RunForm, status: int = 200) -> HttpResponse:
    devices = _devices_with_open_runs()
    context: dict[str, Any] = {
        "form": form,
        "more_is_open": any(name in form.errors for name in RunForm.MORE),
        "cards": device_cards(devices),
        "has_only_cpu": bool(devices) and all(device.kind == "cpu" for device in devices),
        "cpu_default_limit_bytes": CPU_DEFAULT_LIMIT_BYTES,
        "rows": history_rows(with_limit(Run.objects.for_history())[:RECENT_RUNS]),
    }
    return render(request, "analysis/home.html", context, status=status)


def _enabled_devices() -> Any:
    return Device.objects.enabled().best_first()


def _devices_with_open_runs() -> list[Device]:
    """Enabled devices, each with its running and waiting runs in `open_runs`."""
    is_open = Run.objects.filter(state__in=(State.RUNNING, State.QUEUED)).only("pk", "device_id", "state")
    return list(_enabled_devices().prefetch_related(Prefetch("runs", is_open, to_attr="open_runs")))


def _run(run_id: int) -> Run:
    return get_object_or_404(Run.objects.select_related("device", "requested_by"), pk=run_id)


def _page_of(run: Run) -> tuple[str, Any]:
    if not run.is_over:
        return "analysis/run_live.html", pages.live_context
    if run.state == State.FINISHED and run.result:
        return "analysis/run_result.html", pages.result_context
    return "analysis/run_ended.html", pages.ended_context
