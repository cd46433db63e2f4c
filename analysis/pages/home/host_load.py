"""What a comparison of speeds on this host's CPU would meet now: the cores that other programs use."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.conf import settings

from engine.machine.watch import usable_cores
from engine.speed.rounds import BUSY_STARTS_FRACTION

if TYPE_CHECKING:
    from analysis.models.querysets import DeviceWithActivity


def warn_of_load(devices: Iterable[DeviceWithActivity]) -> str:
    """Warn that others use the cores; empty where none of these devices is this host's CPU, or a run makes the load."""
    here = [device for device in devices if device.kind == "cpu" and device.host.name == settings.HOST_NAME]
    is_ours = any(device.running_id is not None for device in here)
    return describe_load(os.getloadavg()[0], len(usable_cores())) if here and not is_ours else ""


def describe_load(used: float, cores: int) -> str:
    """Write "Other programs use about 1.3 of 2 cores now: ..."; empty where speeds can be compared beside them."""
    if used <= BUSY_STARTS_FRACTION * cores:
        return ""
    use = f"Other programs use about {min(used, cores):.1f} of {cores} cores now"
    return f"{use}: the limit is as exact, but of speeds at most the order will be known."
