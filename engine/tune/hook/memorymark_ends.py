"""Writes what was noted before a process ends itself in a way that runs no exit handlers."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

SIGNAL = "signal"
FATAL = {signal.SIGABRT, signal.SIGHUP, signal.SIGKILL, signal.SIGQUIT, signal.SIGTERM}


def see_ends(watched: Any) -> None:
    """Follow `os._exit`, and the signals by which the process ends itself."""
    own, leave, abort, kill, raise_signal = os.getpid(), os._exit, os.abort, os.kill, signal.raise_signal

    def write(how: str) -> None:
        if os.getpid() != own or watched.cpu is None:  # a fork has trained nothing itself
            return
        if watched.cpu.profile is None or watched.thread in (None, threading.get_ident()):
            watched.end(how)

    def write_before(number: int) -> None:
        if number in FATAL and signal.getsignal(number) is signal.SIG_DFL:
            write(SIGNAL)

    def left(status: int) -> Any:
        write("exit")
        leave(status)

    def aborted() -> Any:
        write(SIGNAL)
        abort()

    def killed(pid: int, number: int) -> None:
        if pid == own:
            write_before(number)
        kill(pid, number)

    def raised(number: int) -> None:
        write_before(number)
        raise_signal(number)

    changed: Any = os
    changed._exit, changed.abort, changed.kill = left, aborted, killed
    changed = signal
    changed.raise_signal = raised
