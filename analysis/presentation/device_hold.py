"""A device that another program holds, in a sentence. Its worker reads the holder from the device's lock."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from analysis.models import Device
from analysis.presentation.formatting import day_and_clock, describe_elapsed

_OLD = timedelta(seconds=15)  # three times the interval at which a worker looks


def describe_hold(device: Device) -> str:
    """Write "held by python -m engine bert-tiny cpu (process 546 on vm) since 14:30 UTC"; empty where it is not.

    The age of that knowledge is added where it is no longer fresh.
    """
    if not device.is_held:
        return ""
    since = f" since {day_and_clock(device.held_since)}" if device.held_since else ""
    age = None if device.last_seen_at is None else timezone.now() - device.last_seen_at
    seen = f", seen {describe_elapsed(age.total_seconds())}" if age is not None and age > _OLD else ""
    return f"held by {holder_text(device)}{since}{seen}"


def holder_text(device: Device) -> str:
    """Write "python -m engine bert-tiny cpu (process 546 on vm)"; empty where no other program holds the device."""
    return f"{device.held_work} ({device.held_process})" if device.held_work else device.held_process
