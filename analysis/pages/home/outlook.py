"""The line under the button of the start page: what fits, how long it takes, who waits. From stored runs alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings

from analysis.formatting import duration
from analysis.models.device import DeviceWithActivity
from analysis.pages.home.forms import RunForm
from analysis.presentation.device_cards import holder_text
from analysis.runs.earlier.outlook import Outlook, outlook, waiting_for
from engine.describe.time_left import describe_left
from engine.machine.watch import usable_cores
from engine.race.speed.rounds import BUSY_STARTS_FRACTION, describe_load
from engine.settings.spec import RunSpec
from engine.text.units import sentence_case


def outlook_of(form: RunForm) -> dict[str, Any] | None:
    """Return the outlook of the form's measurement; None while a field that the outlook needs is wrong."""
    if not form.is_valid() or form.spec is None or not form.reads("device"):
        return None
    devices = form.candidate_devices
    known = outlook(form.spec, devices)
    return {
        "size": known.size,
        "seconds": _seconds(known, form.spec),
        "queue": _queue(devices),  # type: ignore[arg-type]
        "load": warn_of_load(devices),  # type: ignore[arg-type]
    }


def _seconds(known: Outlook, spec: RunSpec) -> str:
    """Write "Takes about 50 s.", what runs usually take, or the most where none has finished."""
    if known.seconds is None:
        return f"Takes at most {duration(spec.time_budget_seconds)}, its time budget."
    about = describe_left(min(known.seconds, spec.time_budget_seconds)).removesuffix(" left")
    return f"Takes {about}." if known.is_of_same_settings else f"Recent runs took {about}."


def _queue(devices: Sequence[DeviceWithActivity]) -> str:
    """Write who is first on these devices, or "No run waits."."""
    if not any(device.is_up for device in devices):
        return "No worker is up: the run waits until one is."
    if waiting := waiting_for(devices):
        return f"{waiting:,} run{'s wait' if waiting > 1 else ' waits'} before it."
    taking = [device for device in devices if device.is_up and device.takes_runs]
    if not taking:
        return "The device takes no new runs now: the run waits."
    if any(device.running_id is None and not device.is_held for device in taking):
        return "No run waits."
    if (first := taking[0]).running_id is not None:
        return f"Starts when run {first.running_id} has ended."
    return f"Starts when {holder_text(first)} has ended."


def warn_of_load(devices: Iterable[DeviceWithActivity]) -> str:
    """Warn that others use the cores; empty unless a device is this host's CPU and no run causes the load."""
    here = [device for device in devices if device.kind == "cpu" and device.host.name == settings.HOST_NAME]
    if not here or any(device.running_id is not None for device in here):
        return ""
    cores = len(usable_cores())
    load = describe_load(min(os.getloadavg()[0], cores), cores, BUSY_STARTS_FRACTION)
    return f"{sentence_case(load)}." if load else ""
