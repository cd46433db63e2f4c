"""A pipe by which the processes of a worker learn that its main process stops, or is gone.

Only the main process holds the writing end. When it closes it, or dies in any way, the reading end that every fork
inherits reports the end. This needs no signal handler in django-q2's processes, and no message can be lost.
"""

from __future__ import annotations

import os
import select


class StopPipe:
    """Created in the main process before it forks."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.register_at_fork(after_in_child=self.stop)

    def stop(self) -> None:
        """Close the writing end: in the main process this stops all forks; a fork only closes its copy."""
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1

    def is_stopping(self) -> bool:
        readable, _, _ = select.select([self._reading], [], [], 0)
        return bool(readable)
