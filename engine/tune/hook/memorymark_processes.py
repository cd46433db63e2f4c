"""Notes how the processes end that the training starts itself, as its ranks."""

from __future__ import annotations

import os
from typing import Any


def see_failed_ranks(watched: Any, kind: Any) -> None:
    """Note how a rank of multiprocessing ends: its error never reaches `sys.excepthook`, a fork runs no handlers.

    torch's own wrapper of a rank turns its error into an exit.
    """
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
