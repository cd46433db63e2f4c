"""Ends stray processes: those that a library of the engine left in a session of their own, with no descriptor of ours.

On Linux a process may adopt the orphans below it in place of init ("child subreaper"). The processes of a worker and
`manage.py up` do so; a child that they did not start themselves is a stray. The lock on a card does not reveal a stray,
which need not hold it, and a parent's death does not end it, because it requested no parent-death signal.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

logger = logging.getLogger(__name__)

_PR_SET_CHILD_SUBREAPER = 36
_DEATH_SECONDS = 2.0
_LOOK_SECONDS = 0.02


def adopt_orphans(**_: object) -> None:
    """Make this process the parent of all orphans below it from now on. Forks do not inherit that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def own_children() -> frozenset[int]:
    return frozenset(_children(os.getpid()))


def kill_strays(*, keep: Collection[int] = (), is_stop: bool = False) -> int:
    """Kill and reap this process's children but `keep`, with all below; returns how many. `is_stop`: no fault."""
    killed: set[int] = set()
    until = time.monotonic() + _DEATH_SECONDS
    while strays := own_children().difference(keep):
        for pid in strays:
            for each in (*_descendants(pid), pid):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(each, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        killed |= strays
        if time.monotonic() >= until:
            logger.warning("stray processes have not ended yet, perhaps held by a driver: %s", sorted(strays))
            break
        time.sleep(_LOOK_SECONDS)
    if killed:
        level = logging.DEBUG if is_stop else logging.WARNING
        logger.log(level, "ended stray processes that an engine had left: %s", sorted(killed))
    return len(killed)


def _descendants(pid: int) -> Iterator[int]:
    for child in _children(pid):
        yield from _descendants(child)
        yield child


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found
