"""A process's sign of life to the worker's main process: a clock reading whose age tells how long it has stood still.

A process that is frozen, or stuck in the kernel, is not dead: no parent-death signal, no exit status tells of it.
The reading is of the monotonic clock, which setting the time of day does not move.
"""

from __future__ import annotations

import mmap
import time

_SECONDS_BYTES = 8


class Heartbeat:
    """Made in the main process before it forks; all forks share its memory."""

    def __init__(self) -> None:
        # one aligned store of 8 bytes; struct.pack_into writes zeros first, and a reader between would see an old age
        self._beat_at = memoryview(mmap.mmap(-1, _SECONDS_BYTES)).cast("d")
        self.beat()

    def beat(self) -> None:
        self._beat_at[0] = time.monotonic()

    @property
    def age_seconds(self) -> float:
        return time.monotonic() - self._beat_at[0]
