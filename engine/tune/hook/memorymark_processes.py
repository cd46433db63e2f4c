"""Follows the processes of a training: how those end that it starts itself, as its ranks, and when all end together."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

BUSY_TIMES = 5
"""Other programs and slow loaders may make quick steps take this many times their own time."""


def see_failed_ranks(watched: Any, kind: Any) -> None:
    """Note how a rank of multiprocessing ends: torch turns its error into an exit, unseen by `sys.excepthook`."""
    run = kind.run

    def ran(process: Any) -> None:
        if process.pid != os.getpid():  # the script calls it without a process of its own
            run(process)
            return
        before = watched.forwards
        try:
            run(process)
        except (Exception, SystemExit) as raised:
            error = raised.__context__ if isinstance(raised, SystemExit) and raised.code else raised
            if isinstance(error, Exception) and watched.forwards > before:
                watched.fail(error)
            raise
        finally:
            watched.seen.end()

    kind.run = ran


def steps_to_read(watched: Any) -> int:
    """Return for how many steps to read the memory: fewer slow ones, more quick ones; of a group all the same."""
    settings, now = watched.settings, time.monotonic()
    wanted, least, still = settings["memory_steps"], settings.get("least_steps"), settings.get("still_steps")
    began = next((at for at, name, *_ in watched.marks if name == "step"), now)
    is_late = least and watched.is_alone() and now > began + settings["memory_seconds"]
    watched.computed_from = watched.computed_from or time.process_time()
    is_quick = time.process_time() < watched.computed_from + settings.get("still_seconds", 0.0)
    if still and is_quick and watched.is_alone() and now < began + BUSY_TIMES * settings["still_seconds"]:
        wanted = max(wanted, still)
    return int(least if is_late else wanted)


def last_step(watched: Any, now: int, is_late: bool) -> int:
    """Return the step after which all ranks end: the first late rank makes one more, and tells the others by a file."""
    if watched.is_alone():
        return now if is_late else sys.maxsize
    path = os.path.join(watched.settings["folder"], "last-step")
    if is_late and not os.path.exists(path):
        with open(f"{path}.{os.getpid()}", "w") as file:
            file.write(str(now + 1))
        os.replace(file.name, path)
    if not os.path.exists(path):
        return sys.maxsize
    with open(path) as file:
        return int(file.read())
