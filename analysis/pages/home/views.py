"""The start page: form, earlier results of the same spec, devices, queue, recent runs and totals."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from analysis.accounts.middleware import is_guest, may_be_public
from analysis.accounts.rate_limit import CREATE, RateLimited, check_rate_limit
from analysis.formatting import bytes_text, percent, round_bytes
from analysis.http.page_requests import is_fragment, portal_address
from analysis.http.query_string import without_empty
from analysis.lists.runs.columns import RECENT
from analysis.lists.totals import lab_totals
from analysis.models import Device, Run, State
from analysis.models.device import DeviceWithActivity
from analysis.models.querysets import DeviceQuerySet, RunQuerySet
from analysis.pages.fleet.context import waiting_runs
from analysis.pages.home.first_values import first_values, values_of
from analysis.pages.home.forms import RunForm, StartForm
from analysis.pages.home.outlook import outlook_of
from analysis.pages.run_table import run_table
from analysis.pages.script_runs import scripts_offered
from analysis.pages.spec_form import too_many_requests
from analysis.presentation.device_cards import device_cards
from analysis.presentation.kinds import presentation_of
from analysis.presentation.labels import model_name
from analysis.presentation.origin import describe_origin
from analysis.presentation.run_rows import history_rows
from analysis.runs import services
from analysis.runs.earlier.reuse import EarlierResult, earlier_result
from analysis.runs.queue.forecast import queue_positions
from analysis.runs.queue.queue_now import waiting_by_device
from engine.errors import SpecError
from engine.settings.spec import CPU_DEFAULT_LIMIT_BYTES
from engine.text.units import parse_bytes

RECENT_RUNS, RECENT_ESTIMATES = 5, 3
SCRIPTS_SHOWN = 3
"""Registered commands on this page; the page of the scripts shows all."""
OWN_SHOWN = 5
"""The person's own waiting runs, the first ones."""
HOST_SHARE_MAX = 0.8
"""Share of a host's memory above which a limit of a CPU run is warned of: the rest of the host needs some, too."""
DEVICES_MAX = 4
"""Most devices on this page, those first that a run would get. The fleet page shows all."""


def _recent(runs: RunQuerySet, *, tells_positions: bool) -> dict[str, Any]:
    """Return the newest runs on devices as a table, the newest estimates as rows, and the totals of the lab."""
    newest = runs.for_history().defer("result", "memory_curve")
    on_devices, estimates = list(newest.not_estimating()[:RECENT_RUNS]), list(newest.estimating()[:RECENT_ESTIMATES])
    shown = [*on_devices, *estimates]
    positions = queue_positions(shown) if tells_positions else {}
    return {
        "table": run_table(history_rows(on_devices, positions), RECENT),
        "estimates": history_rows(estimates, positions),
        "totals": lab_totals(shown),
    }


@may_be_public
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show the form, empty or filled; to guests of a public server the latest results.

    `?from=<run>` and `?clone=<run>` fill it with a run's settings; `?model=bert&...` overrides single ones.
    """
    if is_guest(request):  # the runs that have a result, without devices, queue, or names of people and hosts
        recent = _recent(Run.objects.filter(state=State.FINISHED), tells_positions=False)
        return render(request, "analysis/home_guests.html", recent)
    devices, silent = devices_offered(request)
    start = StartForm(without_empty(request.GET))
    for problem in start.problems:
        messages.error(request, f"{problem}.")
    given = start.filled
    source = given.pop("clone", None) or given.pop("from", None)
    run = Run.objects.filter(pk=source).defer("result").first() if source else None
    filled = values_of(run, given.get("kind", ""), devices) | given if run else given
    form = RunForm(devices=devices, silent=silent, initial=filled or first_values(devices))
    return _home_page(request, form, source=run, status=400 if start.problems else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def run_create(request: HttpRequest) -> HttpResponse:
    """Store a run, or show the form again: with all its errors, or with an earlier result of the same spec.

    `again` means: the person has seen that result and wants to measure again.
    """
    if request.method != "POST":
        return redirect("home")
    devices, silent = devices_offered(request)
    form = RunForm(request.POST, devices=devices, silent=silent)
    may_repeat = form.is_valid() and "again" not in request.POST and form.reads("device")
    if may_repeat and form.spec is not None and (earlier := earlier_result(form.spec, form.candidate_devices)):
        return _home_page(request, form, earlier=earlier)
    try:
        run = _created(form, request.user)
    except RateLimited as error:
        return too_many_requests(error, form, partial(_home_page, request, form))
    if run is None:
        return _home_page(request, form, status=422)
    if warning := _describe_limit_taken(form, run):
        messages.warning(request, warning)
    return redirect(run)


@require_POST
def run_outlook(request: HttpRequest) -> HttpResponse:
    """Answer what to expect of the form's run; a POST, because a pasted config.json is too long for an address."""
    devices, silent = devices_offered(request)
    form = RunForm(request.POST, devices=devices, silent=silent)
    return render(request, "analysis/parts/home/outlook.html", {"outlook": outlook_of(form)})


@require_safe
def device_list(request: HttpRequest) -> HttpResponse:
    """Answer the devices part of the home page, which is polled; opened by itself it is a page."""
    template = "analysis/parts/fleet/devices.html" if is_fragment(request) else "analysis/devices.html"
    return render(request, template, _devices_context(request))


def _created(form: RunForm, user: Any) -> Run | None:
    """Store the run and return it; None if the form has errors, which it then shows. Raises RateLimited."""
    run = None
    with transaction.atomic():
        while run is None and form.can_be_checked:
            try:
                run = services.run_create(**form.submission(), requested_by=user)
            except SpecError as error:
                form.add_spec_error(error)
                if not form.use_default(error.field):
                    break
        is_wrong = bool(form.errors)
        if not is_wrong:
            check_rate_limit(CREATE, user)
        transaction.set_rollback(is_wrong)
    return None if is_wrong else run


def _describe_limit_taken(form: RunForm, run: Run) -> str:
    if form.is_limit_dropped:
        needs, default = model_name(run.model), round_bytes(CPU_DEFAULT_LIMIT_BYTES)
        suggested = round_bytes(parse_bytes(form.cleaned_data["suggested_limit"]))
        return f"The suggested limit of {suggested} is less than {needs} needs, so the limit is {default}."
    limit, device = run.spec.get("memory_limit_bytes"), run.requested_device
    if not limit or device is None or device.kind != "cpu" or limit <= HOST_SHARE_MAX * device.capacity_bytes:
        return ""
    return (
        f"The limit of {round_bytes(limit)} is {percent(limit / device.capacity_bytes)} of the memory of this host "
        f"({bytes_text(device.capacity_bytes)}): the run may slow down other programs, or the system may end it. "
        "Cancel it to choose a lower limit."
    )


def _home_page(
    request: HttpRequest,
    form: RunForm,
    *,
    source: Run | None = None,
    earlier: EarlierResult | None = None,
    status: int = 200,
) -> HttpResponse:
    devices = _devices_context(request)
    cards = devices["cards"]
    scripts, more = scripts_offered(SCRIPTS_SHOWN)
    context: dict[str, Any] = {
        **devices,
        "form": form,
        "source": source,
        "source_noun": presentation_of(source).noun if source else "",
        "earlier": earlier,
        "earlier_origin": describe_origin(earlier.run) if earlier else None,
        "earlier_row": history_rows([earlier.run], {})[0] if earlier else None,
        "may_measure": bool(form.places),
        "scripts": scripts,
        "more_scripts": more,
        "portal_address": portal_address(request),
        "has_only_cpu": bool(cards) and all(card.device.kind == "cpu" for card in cards),
        **_recent(Run.objects.all(), tells_positions=True),
    }
    return render(request, "analysis/home.html", context, status=status)


def _devices_context(request: HttpRequest) -> dict[str, Any]:
    waiting = waiting_by_device()
    devices = list(_enabled_devices().with_activity()[: DEVICES_MAX + 1])  # one more than is shown
    has_more, enabled = len(devices) > DEVICES_MAX, Device.objects.enabled()
    return {
        "waiting_count": waiting.total(),
        "waiting_own": _own_waiting(request.user) if waiting else [],
        "cards": device_cards(devices[:DEVICES_MAX], waiting),
        "device_count": enabled.count() if has_more else 0,
        "silent_count": enabled.count() - enabled.seen_lately().count() if has_more else 0,
    }


def _own_waiting(user: Any) -> list[dict[str, Any]]:
    own = Run.objects.on_devices().queued().filter(cancel_requested=False, requested_by=user).with_places()
    first = list(own.defer("result", "memory_curve").order_by("-priority", "created_at", "id")[:OWN_SHOWN])
    return waiting_runs(first, queue_positions(first))


def _enabled_devices() -> DeviceQuerySet:
    return Device.objects.enabled().select_related("host").defer("calibration").best_first()


def devices_offered(request: HttpRequest) -> tuple[list[DeviceWithActivity], list[DeviceWithActivity]]:
    """Return the devices to choose from, and the others, whose workers give no sign of life.

    Without any live worker all are offered: runs wait until workers are back, and a banner says so.
    """
    devices = list(_enabled_devices().allowing(request.user).with_activity())
    living = [device for device in devices if device.is_up]
    return (living, [device for device in devices if not device.is_up]) if living else (devices, [])
