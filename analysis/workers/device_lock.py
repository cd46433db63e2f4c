"""The engine's lock on a device, for a device of the portal.

The row's token protects the database, this lock protects the card. It is free only when every process of the
last run is dead; so its holder knows that a run still marked running here has no living owner.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings

from analysis.models import Device, Run
from engine.machine import device_lock as locks
from engine.machine.device_holder import Holder, holder_of

WORK_OF_A_LOOK = "a portal's worker"
LOOK_LASTS = timedelta(seconds=10)
"""Seconds below which a holder is not named: workers hold their device for an instant to look at the queue."""


def device_lock(device: Device, *, wait_seconds: float = 0.0) -> AbstractContextManager[int]:
    """Hold the device; yields the descriptor that the engine inherits. Raises DeviceBusy, which names the holder."""
    return locks.held(lock_path(device), str(device), work=WORK_OF_A_LOOK, wait_seconds=wait_seconds)


def lock_path(device: Device) -> Path:
    """Return the lock file of a card: the same whatever row or host the card is known by."""
    host = str(device.host)
    return locks.lock_path(device=device.device, uuid=device.uuid, host=host, folder=Path(settings.LOCK_DIR))


def other_holder(device: Device) -> Holder | None:
    """Return the program that holds the device for no run of this portal; None where it is free, or ours."""
    holder = holder_of(lock_path(device))
    if holder is None:
        return None
    age = None if holder.since is None else datetime.now(UTC) - holder.since
    is_a_look = holder.work == WORK_OF_A_LOOK and age is not None and age < LOOK_LASTS
    return None if is_a_look or Run.objects.holding().on(device).exists() else holder


def kill_left_behind(device: Device) -> None:
    """End what a dead engine left in other sessions, which would block the device; for the lock's holder alone."""
    locks.kill_left_behind(lock_path(device))
