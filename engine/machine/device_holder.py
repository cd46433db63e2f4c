"""Reads which program holds a device's lock, without waiting for it. Does not load torch.

The lock itself shows whether the device is held. The description of the holder in its file could have been written by
any local user: it is only shown, with bounded length and without control characters, and decides nothing.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..text.printable import printable

WORK_LENGTH, HOST_LENGTH = 200, 60
SINCE_FORMAT = "%Y-%m-%d %H:%M:%S UTC"
READ_BYTES = 2_000
_MOST_PID = 2**22  # the largest process id in Linux


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a lock, as it describes itself: ``process 546 on vm``, its work, and since when; "" if unknown."""

    process: str = "another process"
    work: str = ""
    since: datetime | None = None

    def __str__(self) -> str:
        """Write ``process 4711 on node7 (run 12, since 2026-03-01 10:00:00 UTC)``."""
        since = "" if self.since is None else f"since {self.since:{SINCE_FORMAT}}"
        details = ", ".join(text for text in (self.work, since) if text)
        return f"{self.process} ({details})" if details else self.process


def holder_of(path: Path) -> Holder | None:
    """Return the holder of this lock; None where the device is free, or the file cannot be read."""
    if sys.platform == "win32":
        return None
    import fcntl

    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            try:  # a shared lock, briefly: two readers do not see each other as a holder
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return described(os.pread(descriptor, READ_BYTES, 0))
        finally:
            os.close(descriptor)
    return None


def described(content: bytes) -> Holder:
    """Read what the holder wrote; anything but a description of a process is left out."""
    try:
        written = json.loads(content)
    except (ValueError, RecursionError):
        return Holder()
    if not isinstance(written, dict):
        return Holder()
    pid, host = written.get("pid"), _plain(written.get("host"), HOST_LENGTH)
    is_id = isinstance(pid, int) and not isinstance(pid, bool) and 0 < pid <= _MOST_PID
    process = (f"process {pid}" if is_id else "another process") + (f" on {host}" if host else "")
    return Holder(process, _plain(written.get("work"), WORK_LENGTH), _moment(written.get("since")))


def _plain(text: Any, length: int) -> str:
    return " ".join(printable(text, length).split()) if isinstance(text, str) else ""


def _moment(text: Any) -> datetime | None:
    """Return when the holder's work began; None for anything but a time in the past."""
    try:
        since = datetime.strptime(text, SINCE_FORMAT).replace(tzinfo=UTC)
    except (TypeError, ValueError):
        return None
    return since if since <= datetime.now(UTC) else None
