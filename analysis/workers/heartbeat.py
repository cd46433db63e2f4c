"""A process's sign of life to the worker's main process: the time of its last activity.

A process that is frozen, or stuck in the kernel, is not dead: neither a parent-death signal nor an exit status
reports it. The time is of the monotonic clock, which is not affected by setting the time of day.
"""

from __future__ import annotations

import mmap
import time


class Heartbeat:
    """Created in the main process before it forks; all forks share its memory."""

    def __init__(self) -> None:
        # one aligned store of 8 bytes; struct.pack_into writes zeros first, and a reader between would see an old age
        self._beat_at = memoryview(mmap.mmap(-1, 8)).cast("d")
        self.beat()

    def beat(self) -> None:
        self._beat_at[0] = time.monotonic()

    @property
    def age_seconds(self) -> float:
        return time.monotonic() - self._beat_at[0]
