"""Ends what a library of the engine left behind: a process in a session of its own, with none of our descriptors.

On Linux a process may take in the orphans below it in place of init ("child subreaper"). The processes of a worker and
`manage.py up` do so; what they find among their children that they did not start themselves is such a stray. The lock
on a card does not tell of it, for it need not hold that, and no parent's death ends it, for it asked for no signal.
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


def adopt_orphans() -> None:
    """From now on whoever below this process loses their parent becomes its child. Forks do not inherit that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def own_children() -> frozenset[int]:
    """The children of this process; none where the system does not tell."""
    return frozenset(_children(os.getpid()))


def kill_strays(*, keep: Collection[int] = ()) -> int:
    """Kill and reap the children of this process but for these, with all below them; returns how many there were."""
    killed: set[int] = set()
    until = time.monotonic() + _DEATH_SECONDS
    while strays := own_children().difference(keep):
        for pid in strays:
            _kill([*_descendants(pid), pid])
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        killed |= strays
        if time.monotonic() >= until:
            logger.warning("not gone yet, perhaps held by a driver: %s", sorted(strays))
            break
        time.sleep(_LOOK_SECONDS)
    if killed:
        logger.warning("ended what an engine had left behind: processes %s", sorted(killed))
    return len(killed)


def _kill(pids: Collection[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


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
