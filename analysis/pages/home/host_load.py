"""What a comparison of speeds on this host's CPU would meet now: the cores that other programs use."""

from __future__ import annotations

import os
from collections.abc import Iterable

from django.conf import settings

from analysis.models.device import DeviceWithActivity
from engine.machine.watch import usable_cores
from engine.speed.rounds import BUSY_STARTS_FRACTION, describe_load
from engine.text.units import sentence_case


def warn_of_load(devices: Iterable[DeviceWithActivity]) -> str:
    """Warn that others use the cores; empty where none of these devices is this host's CPU, or a run makes the load."""
    here = [device for device in devices if device.kind == "cpu" and device.host.name == settings.HOST_NAME]
    if not here or any(device.running_id is not None for device in here):
        return ""
    cores = len(usable_cores())
    load = describe_load(min(os.getloadavg()[0], cores), cores, BUSY_STARTS_FRACTION)
    return f"{sentence_case(load)}." if load else ""
