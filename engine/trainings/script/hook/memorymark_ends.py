"""Writes what was noted before a process ends itself in a way that runs no exit handlers, or as a failed rank."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from memorymark_patches import wrap
from memorymark_seen import SIGNAL

FATAL = {signal.SIGABRT, signal.SIGHUP, signal.SIGKILL, signal.SIGQUIT, signal.SIGTERM}


def see_ends(watched: Any) -> None:
    """Follow `os._exit`, and the signals by which the process ends itself."""
    own = os.getpid()

    def write(how: str) -> None:
        if os.getpid() != own or watched.cpu is None:  # a fork has trained nothing itself
            return
        if watched.cpu.profile is None or watched.forwards.thread in (None, threading.get_ident()):
            watched.end(how)

    def write_before(number: int) -> None:
        if number in FATAL and signal.getsignal(number) is signal.SIG_DFL:
            write(SIGNAL)

    def left(leave: Any, status: int) -> Any:
        write("exit")
        leave(status)

    def aborted(abort: Any) -> Any:
        write(SIGNAL)
        abort()

    def killed(kill: Any, pid: int, number: int) -> None:
        if pid == own:
            write_before(number)
        kill(pid, number)

    def raised(raise_signal: Any, number: int) -> None:
        write_before(number)
        raise_signal(number)

    for owner, name, around in (
        (os, "_exit", left),
        (os, "abort", aborted),
        (os, "kill", killed),
        (signal, "raise_signal", raised),
    ):
        wrap(owner, name, around)


def rank_ran(watched: Any, run: Any, process: Any) -> None:
    """Note how a rank of multiprocessing ends: torch turns its error into an exit, unseen by `sys.excepthook`."""
    if process.pid != os.getpid():  # the script calls it without a process of its own
        run(process)
        return
    before = watched.forwards.trained
    try:
        run(process)
    except (Exception, SystemExit) as raised:
        error = raised.__context__ if isinstance(raised, SystemExit) and raised.code else raised
        if isinstance(error, Exception) and watched.forwards.trained > before:
            watched.fail(error)
        raise
    finally:
        watched.seen.end()
