"""One lock file per device: whoever works on the device holds it, and the engine inherits it.

The row's token protects the database, this lock protects the card. It is free only when every process of
the last run is dead; so its holder knows that a run still marked running here belongs to nobody.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from analysis.models import Device

_RETRY_SECONDS = 0.05


class DeviceBusy(Exception):
    """Another process works on this device."""


@contextmanager
def device_lock(device: Device, *, wait_seconds: float = 0.0) -> Iterator[int]:
    """Hold the device; yields the descriptor that the engine inherits. Raises DeviceBusy."""
    folder = settings.DATA_DIR / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / f"{device.queue_name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(descriptor, device, time.monotonic() + wait_seconds)
        yield descriptor
    finally:
        os.close(descriptor)  # frees the lock, unless an engine still lives and holds it too


def _take(descriptor: int, device: Device, until: float) -> None:
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            if time.monotonic() >= until:
                raise DeviceBusy(f"{device} is busy: another process works on it") from exc
            time.sleep(_RETRY_SECONDS)
