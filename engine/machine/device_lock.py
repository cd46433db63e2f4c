"""One lock file per device of this machine, held by the process that uses the device. Does not load torch.

The command line takes it and so do the portal's workers, whose engines inherit it (`INHERITED`). All programs of a
machine share one folder of locks: two programs on one device compete for memory and disturb each other's timings, on a
CPU as on a card. The lock is free only when every process that shares it is dead: to its holder, no process of an
earlier run is left.

Every user of the machine may write the file, as they may use the device. Its content only describes the holder to
people: the kernel knows who holds the lock, and whether they are dead.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from ..errors import DeviceBusy, DeviceUnavailable
from ..facts.result import DeviceFacts
from ..program import PROGRAM
from ..text.masking import masked
from .device_holder import READ_BYTES, SINCE_FORMAT, WORK_LENGTH, described

logger = logging.getLogger(__name__)

FOLDER, HOST = "MEMORYMARK_LOCK_DIR", "MEMORYMARK_HOST"
INHERITED = "MEMORYMARK_DEVICE_LOCK"
"""Environment variable with the descriptors of the locks, for a process whose parent holds them: `5`, `5,6`."""

_RETRY_SECONDS = 0.05
_DEATH_SECONDS = 1.0  # time that a killed process may take to release the lock
_PROC = Path("/proc")
_TAKER = re.compile(r"^lock:.*\bFLOCK\s+\w+\s+\w+\s+(-?\d+)\s", re.MULTILINE)
"""Finds who took a lock in the ``fdinfo`` of a descriptor: ``lock: 1: FLOCK  ADVISORY  WRITE 4711 fe:00:21 0 EOF``."""


def default_folder() -> Path:
    return Path(tempfile.gettempdir()) / "memorymark-locks"


def lock_path(*, device: str, uuid: str | None, host: str | None = None, folder: Path | None = None) -> Path:
    folder = folder or Path(os.environ.get(FOLDER) or default_folder())
    host = host or os.environ.get(HOST) or socket.gethostname()
    return folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', uuid or f'{host}-{device}')}.lock"


def inherited_by_child(descriptors: Sequence[int]) -> dict[str, str]:
    return {INHERITED: ",".join(map(str, descriptors))} if descriptors else {}


def inherited_locks() -> tuple[int, ...]:
    """Return the parent's locks, which children get too: a device stays locked while any process of a run lives."""
    with suppress(KeyError, ValueError, OSError):
        descriptors = tuple(map(int, os.environ[INHERITED].split(",")))
        if all(stat.S_ISREG(os.fstat(each).st_mode) for each in descriptors):
            return descriptors
    return ()


@contextmanager
def held(
    path: Path,
    name: str,
    *,
    work: str = "",
    wait_seconds: float = 0.0,
    on_wait: Callable[[str], None] = lambda _: None,
) -> Iterator[int]:
    """Hold the device `name`; yields the descriptor for children to inherit. Raises DeviceBusy, which names the holder.

    `work` describes the use of the device, in the message to others. `on_wait` is called with that message once, before
    a wait. Processes that a dead holder left, such as a grandchild of its engine, are killed first.
    """
    descriptor = _take(path, name, time.monotonic() + wait_seconds, on_wait)
    try:
        sign(descriptor, work)
        yield descriptor
    finally:
        os.close(descriptor)  # frees the lock, unless a child still lives and holds it too


def held_for_command(
    facts: DeviceFacts,
    work: str | None = None,
    *,
    wait_seconds: float = 0.0,
    on_wait: Callable[[str], None] = lambda _: None,
) -> AbstractContextManager[int]:
    if inherited := inherited_locks():
        return nullcontext(inherited[0])
    path, work = lock_path(device=facts.device, uuid=facts.uuid), work or " ".join([PROGRAM, *masked(sys.argv[1:])])
    return held(path, facts.device, work=work, wait_seconds=wait_seconds, on_wait=on_wait)


def sign(descriptor: int, work: str) -> None:
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": time.strftime(SINCE_FORMAT, time.gmtime()),
        "work": work[:WORK_LENGTH],
    }
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def kill_left_behind(path: Path) -> None:
    """End the processes that a dead engine left in other sessions. Only the holder of the lock may call this."""
    _kill_others(path, "its engine ended")


def _take(path: Path, name: str, until: float, on_wait: Callable[[str], None]) -> int:
    import fcntl  # Windows has none, and no worker of the engine either

    killed: set[int] = set()
    has_reported = False
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(path, descriptor):
                return descriptor
        except BlockingIOError as exc:
            holder = described(os.pread(descriptor, READ_BYTES, 0))
            # each gets time to die only once: in a driver call the kernel may hold one for ever
            if orphans := set(_kill_orphans(path)) - killed:
                killed |= orphans
                until = max(until, time.monotonic() + _DEATH_SECONDS)
            busy = f"{name} is busy: {holder} works on it"
            if time.monotonic() >= until:
                os.close(descriptor)
                raise DeviceBusy(busy) from exc
            if not has_reported:
                on_wait(busy)
                has_reported = True
        os.close(descriptor)
        time.sleep(_RETRY_SECONDS)


def _open(path: Path) -> int:
    """Open the lock's file, for every user of this machine. Raises DeviceUnavailable if it is no ordinary file."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(PermissionError):
            path.parent.chmod(0o1777)
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)  # no O_CREAT: Linux refuses it for another user's file in a sticky folder
    except FileNotFoundError:
        descriptor = os.open(path, flags | os.O_CREAT, 0o666)
        with suppress(PermissionError):
            os.fchmod(descriptor, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DeviceUnavailable(f"the lock {path} is no regular file: remove it")
    return descriptor


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the file still exists and was not replaced: a lock on a removed file protects nothing."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _kill_orphans(path: Path) -> list[int]:
    sharing = _sharing(path)
    started = [int(moment) for pid in sharing if (moment := _started(pid)) is not None]
    if not started or any(taker in sharing for taker in sharing.values()):
        return []
    is_orphaned = all(_is_dead(taker, min(started)) for taker in sharing.values())
    return _kill_others(path, "its holder died") if is_orphaned else []


def _is_dead(taker: int, first_started: int) -> bool:
    """Whether the taker of a lock is dead; `first_started` is when the first process to inherit it started.

    The kernel reports 0 for an invisible process: in a container, a dead one. A later start is a reused number.
    """
    if taker <= 0:
        return True
    if (started := _started(taker)) is not None:
        return int(started) > first_started
    try:
        os.kill(taker, 0)
    except PermissionError:
        return False  # the process is of another user, on a host that hides other users' processes
    except ProcessLookupError:
        return True
    return True  # a zombie: it ended, and its parent has not waited for it yet


def _kill_others(path: Path, since: str) -> list[int]:
    others = [pid for pid in _sharing(path) if pid != os.getpid()]
    for pid in others:
        logger.warning("process %s holds %s after %s: killing it", pid, path.name, since)
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return others


def _started(pid: int) -> str | None:
    """Return the process's start time as the kernel reports it; None when the process does not exist or is hidden."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def _sharing(path: Path) -> dict[int, int]:
    """Return the processes that share the lock, as far as visible, each with its taker; waiting ones do not share."""
    found = {}
    for entry in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            wanted = path.stat()
            mine = [link.name for link in (entry / "fd").iterdir() if os.path.samestat(link.stat(), wanted)]
            takers = [taker for name in mine if (taker := _TAKER.search((entry / "fdinfo" / name).read_text()))]
            if takers:
                found[int(entry.name)] = int(takers[0][1])
    return found
