"""One lock file per device of this machine: whoever works on the device holds it, and the engine inherits it.

The row's token protects the database, this lock protects the card. It is free only when every process of the
last run is dead; so its holder knows that a run still marked running here belongs to nobody. The folder is
the machine's, not the portal's: two portals on one machine must not use one card at once, either.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings

from analysis.models import Device

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.05
_DEATH_SECONDS = 1.0  # what a killed process may take to let go
_PROC = Path("/proc")


class DeviceBusy(Exception):
    """Another process works on this device."""


@contextmanager
def device_lock(device: Device, *, wait_seconds: float = 0.0) -> Iterator[int]:
    """Hold the device; yields the descriptor that the engine inherits. Raises DeviceBusy.

    What a dead holder left behind, such as a grandchild of its engine, is killed first.
    """
    path = lock_path(device)
    descriptor = _take(path, device, time.monotonic() + wait_seconds)
    try:
        _sign(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)  # frees the lock, unless an engine still lives and holds it too


def lock_path(device: Device) -> Path:
    """By UUID, which is the card's own; a device without one is known by its host."""
    words = device.uuid or f"{device.host}-{device.device}"
    return Path(settings.LOCK_DIR) / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', words)}.lock"


def _take(path: Path, device: Device, until: float) -> int:
    killed: set[int] = set()
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(path, descriptor):
                return descriptor
        except BlockingIOError as exc:
            # each gets its time to die, once: the kernel may hold one for ever, in a driver call
            if orphans := set(kill_orphans(path, descriptor)) - killed:
                killed |= orphans
                until = max(until, time.monotonic() + _DEATH_SECONDS)
            if time.monotonic() >= until:
                os.close(descriptor)
                raise DeviceBusy(f"{device} is busy: another process works on it") from exc
        os.close(descriptor)
        time.sleep(_RETRY_SECONDS)


def _open(path: Path) -> int:
    """The folder and its files are for everybody on this machine, as the card is."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(PermissionError):
            path.parent.chmod(0o1777)
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags)  # without O_CREAT: Linux refuses it for a stranger's file in a sticky folder
    except FileNotFoundError:
        descriptor = os.open(path, flags | os.O_CREAT, 0o666)
        with suppress(PermissionError):
            os.fchmod(descriptor, 0o666)
        return descriptor


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the file was not removed or replaced meanwhile: a lock on a file nobody finds protects nothing."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sign(descriptor: int) -> None:
    """Say who holds it: process and start time, so that a number used again is not taken for it."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "started": _started(os.getpid())}).encode(), 0)


def kill_orphans(path: Path, descriptor: int) -> list[int]:
    """If the process that took the lock is dead, kill those that only inherited it; returns their numbers."""
    try:
        holder = json.loads(os.pread(descriptor, 1000, 0))
        if _started(int(holder["pid"])) == holder["started"]:
            return []
    except (ValueError, KeyError, TypeError):
        return []  # just taken and not signed yet
    return _kill_others(path, "its worker died")


def kill_left_behind(device: Device) -> None:
    """By the holder, once its engine is dead: end what that left in other sessions, which would block the device."""
    _kill_others(lock_path(device), "its engine ended")


def _kill_others(path: Path, since: str) -> list[int]:
    others = [pid for pid in _holders(path) if pid != os.getpid()]
    for pid in others:
        logger.warning("process %s holds %s after %s: killing it", pid, path.name, since)
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return others


def _started(pid: int) -> str | None:
    """The process's start time in the kernel's words; None when there is no such process, or none to be seen."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def _holders(path: Path) -> list[int]:
    """Processes that share the lock itself, of those this one may look into; not those that merely wait for it."""
    found = []
    for entry in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            wanted = path.stat()
            mine = [link.name for link in (entry / "fd").iterdir() if os.path.samestat(link.stat(), wanted)]
            if any("FLOCK" in (entry / "fdinfo" / name).read_text() for name in mine):
                found.append(int(entry.name))
    return found
