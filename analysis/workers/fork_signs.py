"""What the main process of a worker and its forks know of each other: both signs are made before the first fork.

A process that is frozen, or stuck in the kernel, is not dead: neither a parent-death signal nor an exit status reports
it, so each gives a sign of life. And each learns, without a signal handler in django-q2's processes and without a
message that could be lost, that the main process stops or is gone.
"""

from __future__ import annotations

import mmap
import os
import select
import time


class Heartbeat:
    """The time of a fork's last activity, in memory that all forks share, by the monotonic clock."""

    def __init__(self) -> None:
        # one aligned store of 8 bytes; struct.pack_into writes zeros first, and a reader between would see an old age
        self._beat_at = memoryview(mmap.mmap(-1, 8)).cast("d")
        self.beat()

    def beat(self) -> None:
        self._beat_at[0] = time.monotonic()

    @property
    def age_seconds(self) -> float:
        return time.monotonic() - self._beat_at[0]


class StopPipe:
    """A pipe whose writing end only the main process holds: its close or death ends every fork's reading end."""

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
