"""Starts a command, and kills it with all its child processes when its own standard input ends.

This script is run by its path and imports only the standard library. It is the parent of the command. On Linux it also
adopts each process below it whose parent ends, so it finds ranks and loader workers that have sessions of their own.
The process that started it holds the other end of its input. When that process is killed, the input ends.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LOOK_SECONDS = 0.02
DEATH_SECONDS = 10.0


def main(command: list[str]) -> int:
    """Run the command; its exit status, negative for a signal. Ends early when the standard input does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    # the command's output goes where this process's errors go; its own output is the answer
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, preexec_fn=_die_with_guardian)
    while process.poll() is None:
        if select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
            break
    status = process.poll()
    _end_all(process)
    print("" if status is None else status, flush=True)  # noqa: T201 - the answer to the one who started it
    return 0


def _die_with_guardian() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_all(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left below this process, until nothing is."""
    until = time.monotonic() + DEATH_SECONDS
    while time.monotonic() < until:
        left = _descendants(os.getpid()) or ({process.pid} if process.poll() is None else set())
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(LOOK_SECONDS)


def _descendants(pid: int) -> set[int]:
    found: set[int] = set()
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found |= {child} | _descendants(child)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
