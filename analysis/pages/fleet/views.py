"""The page of all devices, and its polled part. It only reads the database: workers store what drivers report."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, OuterRef, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from analysis.http.page_requests import is_fragment
from analysis.http.query_string import StrictQueryForm
from analysis.lists.matrix.query import card_prices
from analysis.lists.use.days import DAY
from analysis.lists.use.load import memory_since
from analysis.models import Device, Host, Run
from analysis.pages.fleet.context import HELD_DAYS, fleet_hosts, waiting_runs
from analysis.pages.fleet.use import RANGES, use_context
from analysis.permissions import may_manage
from analysis.runs import services
from analysis.runs.queue.forecast import queue_positions
from analysis.runs.queue.queue_now import READ_MAX, runs_by_device, waiting_by_device

_DEFAULT_DAYS = 30
DEVICES_MAX = 300
WAITING_READ_MAX = 100
REPORTED_MAX = 50


class FleetQuery(StrictQueryForm):
    """`?host=lab-1&days=7`: one host, and the days over which use is shown."""

    host = forms.CharField(required=False)
    days = forms.ChoiceField(choices=[(str(days), str(days)) for days in RANGES], initial=str(_DEFAULT_DAYS))

    @property
    def host_name(self) -> str:
        return "" if "host" in self.errors else str(self.cleaned_data["host"])

    @property
    def day_count(self) -> int:
        return _DEFAULT_DAYS if "days" in self.errors else int(self.cleaned_data["days"])


@require_safe
def fleet(request: HttpRequest) -> HttpResponse:
    query = FleetQuery(request.GET)
    hosts = list(Host.objects.filter(pk__in=Device.objects.values("host")).values_list("name", flat=True))
    context = _context(query) | {"host_names": hosts, "query": query}
    context |= use_context(context["devices"], context["now"], host=query.host_name, day_count=query.day_count)
    lines = [line for group in context["hosts"] for line in group["devices"]]
    for line in lines:
        line["use"] = context["lines"].get(line["device"].pk)
    context["states"] = Counter(line["chip"].word for line in lines).most_common()
    return render(request, "analysis/fleet.html", context, status=400 if query.problems else 200)


@require_safe
def fleet_now(request: HttpRequest) -> HttpResponse:
    """Answer the part that changes; opened by itself it is the whole page."""
    if not is_fragment(request):
        return fleet(request)
    return render(request, "analysis/parts/fleet/now.html", _context(FleetQuery(request.GET)))


@require_POST
def device_drain(request: HttpRequest, device_id: int) -> HttpResponse:
    """Drain one device, or end its drain."""
    if not may_manage(request.user):
        raise PermissionDenied
    get_object_or_404(Device.all_devices, pk=device_id)
    drained = {"1": True, "0": False}.get(request.POST.get("drained", ""))
    if drained is None:
        messages.error(request, "`drained` is 1 to drain a device, or 0 to let it take runs. Nothing was changed.")
    else:
        services.maintenance_set_drained(model=Device, ids=[device_id], drained=drained)
    return redirect("analysis:fleet")


def _context(query: FleetQuery) -> dict[str, Any]:
    host, now = query.host_name, timezone.now()
    known = Device.objects.select_related("host").defer("calibration")
    devices = list((known.on_host(host) if host else known).with_activity())
    shown = devices[:DEVICES_MAX]
    queue = Run.objects.on_devices().queued().filter(cancel_requested=False)
    ordered = queue.with_places().defer("result", "memory_curve").order_by("-priority", "created_at", "id")
    first = list(ordered[:WAITING_READ_MAX])
    waiting = waiting_runs(first, queue_positions(first))
    counts = waiting_by_device()
    memory = memory_since([device.pk for device in shown if device.is_filled_by_others], now - DAY * HELD_DAYS)
    running = Run.objects.on_devices().running().select_related("requested_by").defer("result", "memory_curve")
    return {
        "devices": shown,
        "hosts": fleet_hosts(shown, runs_by_device(running, shown), waiting, counts, card_prices(), memory, now),
        "host": host,
        "day_count": query.day_count,
        "now": now,
        "device_count": len(devices),
        "shown_count": len(shown),
        "waiting_anywhere": [each for each in waiting if each["run"].requested_device_id is None],
        "waiting_anywhere_count": counts[None],
        "has_positions": counts.total() <= READ_MAX,
        "reported": [] if host else _reported(),
    }


def _reported() -> list[Device]:
    """Read the devices last named by reports. They take no runs, because no worker of this portal serves them."""
    devices = Device.all_devices.filter(is_reported=True).select_related("host")
    live = Run.objects.running().filter(device=OuterRef("pk")).values("device").annotate(count=Count("pk"))
    return list(devices.annotate(live_count=Subquery(live.values("count"))).order_by("-last_seen_at")[:REPORTED_MAX])
