"""A pipe that tells the processes of a worker that its main process wants to stop, or is gone.

Only the main process holds the writing end. When it closes it, or dies in whatever way, the reading end
that every fork inherits reports the end: no signal handler in django-q2's processes, nothing to lose.
"""

from __future__ import annotations

import os
import select


class StopPipe:
    """Made in the main process before it forks."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.register_at_fork(after_in_child=self.stop)

    def stop(self) -> None:
        """In the main process: ask everybody to stop. In a fork: let go of the copy of the writing end."""
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1

    def is_stopping(self) -> bool:
        readable, _, _ = select.select([self._reading], [], [], 0)
        return bool(readable)
