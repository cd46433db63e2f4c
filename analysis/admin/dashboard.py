"""The figures of the admin panel's first page: read from indexes and small tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count

from analysis.database import database_now
from analysis.lists.totals import lab_totals
from analysis.lists.use.days import first_moment, use_by_day
from analysis.lists.use.load import HELD_MAX, held_since
from analysis.models import Device, Run, State
from analysis.presentation.labels import model_name

DAYS = 30
_SILENT_SHOWN = _BARS_SHOWN = 10
_BAR_WIDTH = 100.0


def dashboard() -> dict[str, Any]:
    """Return all figures; workers of `silent` devices gave no sign of life."""
    now, totals = database_now(), lab_totals()
    waiting = Run.objects.queued().filter(cancel_requested=False).order_by("created_at", "id")
    oldest = waiting.only("id", "model", "state", "created_at").first()
    devices = list(Device.all_devices.select_related("host").defer("calibration").with_activity())
    enabled = [device for device in devices if device.enabled and not device.is_reported]
    silent = [device for device in enabled if not device.is_up]
    # in one statement, from the index on the state; deleted runs are included
    counts: dict[str, Any] = dict(Run.all_runs.order_by().values_list("state").annotate(Count("pk")))
    gpu_hours = _gpu_hours([device for device in devices if device.kind != "cpu"], now)
    unused_percent = 100 * (totals.sums.fraction or 0.0)
    return {
        "totals": totals,
        "unused": bars([("unused", unused_percent, "bar-bad"), ("in use", 100 - unused_percent)], full=100.0),
        "states": bars((State(state).label, counts.get(state, 0), f"state-{state}") for state in State),
        "gpu_hours": gpu_hours[:_BARS_SHOWN],
        "more_gpus": max(0, len(gpu_hours) - _BARS_SHOWN),
        "all_gpu_hours": sum(bar["value"] for bar in gpu_hours),
        "days": DAYS,
        "oldest_waiting": oldest,
        "oldest_model": model_name(oldest.model) if oldest else "",
        "silent": silent[:_SILENT_SHOWN],
        "silent_more": max(0, len(silent) - _SILENT_SHOWN),
        "device_count": len(enabled),
        "online_count": len(enabled) - len(silent),
        "as_of": now,
    }


def _gpu_hours(gpus: Sequence[Device], now: datetime) -> list[dict[str, Any]]:
    """Add up the hours in which runs held these devices, the most first, as the fleet page does."""
    known_since = {device.pk: device.host.registered_at for device in gpus}
    used = use_by_day(held_since(first_moment(now, DAYS))[:HELD_MAX], known_since, now, DAYS)
    hours = [(str(device), used[device.pk].hours) for device in gpus if used[device.pk].hours]
    return bars(sorted(hours, key=lambda each: -each[1]))


def bars(values: Iterable[tuple[Any, ...]], full: float | None = None) -> list[dict[str, Any]]:
    """PURE: scale bars so that the longest, or `full`, fills the chart, and each value above zero is visible."""
    rows = list(values)
    longest = full or max((value for _, value, *_ in rows), default=0) or 1
    return [
        {
            "name": name,
            "value": value,
            "width": max(0.6, _BAR_WIDTH * value / longest) if value else 0.0,
            "css_class": "".join(css_class),
        }
        for name, value, *css_class in rows
    ]
