"""What a computing process owes its parent: to end with it, and to be killed before it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

OOM_SCORE_ADJ = 500  # on the kernel's scale up to 1,000, where the highest is killed first
PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int | None = None) -> None:
    """Ask Linux to kill this process when `parent` ends, whatever it does; if it has ended, end here."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def prefer_as_oom_victim() -> None:
    """Ask the kernel to kill this process, and its forks, before others when the host runs out of memory."""
    score = Path("/proc/self/oom_score_adj")
    with contextlib.suppress(OSError, ValueError):  # not Linux: the kernel chooses by itself
        if int(score.read_text()) < OOM_SCORE_ADJ:
            score.write_text(str(OOM_SCORE_ADJ))
