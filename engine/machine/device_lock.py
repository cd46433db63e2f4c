"""One lock file per device of this machine, held by the process that uses the device. Does not load torch.

The command line takes it and so do the portal's workers, whose engines inherit it (`INHERITED`). The folder is the
machine's, not one portal's: two programs on one device compete for memory and disturb each other's timings, on a CPU
as on a card. The file names the holder. The lock is free only when every process that shares it is dead, so its
holder knows that no process of an earlier run is left.
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
from typing import Any

from ..errors import DeviceBusy
from ..program import PROGRAM
from ..result import DeviceFacts

logger = logging.getLogger(__name__)

FOLDER, HOST = "MEMORYMARK_LOCK_DIR", "MEMORYMARK_HOST"
INHERITED = "MEMORYMARK_DEVICE_LOCK"
"""The environment variable with the lock's descriptor, for a process whose parent holds the lock."""

_RETRY_SECONDS = 0.05
_DEATH_SECONDS = 1.0  # what a killed process may take to release it
_WORK_LENGTH = 200
_PROC = Path("/proc")


def default_folder() -> Path:
    """Return the default folder of the locks: the same for every program of the machine."""
    return Path(tempfile.gettempdir()) / "memorymark-locks"


def lock_path(*, device: str, uuid: str | None, host: str | None = None, folder: Path | None = None) -> Path:
    """Return the lock of a device. By UUID, which is the card's own; a device without one is known by its host."""
    folder = folder or Path(os.environ.get(FOLDER) or default_folder())
    host = host or os.environ.get(HOST) or socket.gethostname()
    return folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', uuid or f'{host}-{device}')}.lock"


def inherited_by_child(descriptors: Sequence[int]) -> dict[str, str]:
    """Return environment variables for a child that uses the device under this lock."""
    return {INHERITED: str(descriptors[0])} if descriptors else {}


def inherited_lock() -> int | None:
    """Return the descriptor of the lock that the starter of this process holds for it; None where there is none."""
    with suppress(KeyError, ValueError, OSError):
        descriptor = int(os.environ[INHERITED])
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
    return None


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
    """Hold the device for this command line, or for `work`; or use the lock that its parent holds for it."""
    if (inherited := inherited_lock()) is not None:
        return nullcontext(inherited)
    path, work = lock_path(device=facts.device, uuid=facts.uuid), work or " ".join([PROGRAM, *sys.argv[1:]])
    return held(path, facts.device, work=work, wait_seconds=wait_seconds, on_wait=on_wait)


def sign(descriptor: int, work: str) -> None:
    """Write the holder and its work into the lock. The start time distinguishes a reused process id."""
    holder = {
        "pid": os.getpid(),
        "started": _started(os.getpid()),
        "namespace": _namespace(),
        "host": socket.gethostname(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "work": work[:_WORK_LENGTH],
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
            holder = _holder(descriptor)
            # each gets its time to die, once: the kernel may hold one for ever, in a driver call
            if orphans := set(_kill_orphans(path, holder)) - killed:
                killed |= orphans
                until = max(until, time.monotonic() + _DEATH_SECONDS)
            busy = f"{name} is busy: {_describe_holder(holder)} works on it"
            if time.monotonic() >= until:
                os.close(descriptor)
                raise DeviceBusy(busy) from exc
            if not has_reported:
                on_wait(busy)
                has_reported = True
        os.close(descriptor)
        time.sleep(_RETRY_SECONDS)


def _open(path: Path) -> int:
    """Open the lock's file. It and its folder are for everybody on this machine, as the device is."""
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
    """Whether the file still exists and was not replaced: a lock on a removed file protects nothing."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> dict[str, Any]:
    """Return what the holder wrote; empty where it has just taken the lock, or wrote something else."""
    try:
        holder = json.loads(os.pread(descriptor, 2_000, 0))
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def _describe_holder(holder: dict[str, Any]) -> str:
    """Write ``process 4711 on node7 (run 12, since 2026-03-01 10:00:00 UTC)``."""
    if "pid" not in holder:
        return "another process"
    where = f" on {holder['host']}" if holder.get("host") else ""
    since = f"since {holder['since']}" if holder.get("since") else ""
    details = ", ".join(text for text in (holder.get("work"), since) if text)
    return f"process {holder['pid']}{where}{f' ({details})' if details else ''}"


def _kill_orphans(path: Path, holder: dict[str, Any]) -> list[int]:
    """If the process that took the lock is dead, kill those that inherited it; returns their ids.

    A holder in a container has another numbering of processes, so its id cannot be checked here.
    """
    try:
        is_alive = _started(int(holder["pid"])) == holder["started"]
    except (KeyError, TypeError, ValueError):
        return []  # just taken and not signed yet
    is_elsewhere = holder.get("namespace", _namespace()) != _namespace()
    return [] if is_alive or is_elsewhere else _kill_others(path, "its holder died")


def _kill_others(path: Path, since: str) -> list[int]:
    others = [pid for pid in _holders(path) if pid != os.getpid()]
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


def _namespace() -> str | None:
    """Return the process id namespace of this process; None where the system has only one."""
    try:
        return os.readlink(_PROC / "self" / "ns" / "pid")
    except OSError:
        return None


def _holders(path: Path) -> list[int]:
    """List the processes that share the lock itself, of those this one may look into; not those that wait for it."""
    found = []
    for entry in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            wanted = path.stat()
            mine = [link.name for link in (entry / "fd").iterdir() if os.path.samestat(link.stat(), wanted)]
            if any("FLOCK" in (entry / "fdinfo" / name).read_text() for name in mine):
                found.append(int(entry.name))
    return found
