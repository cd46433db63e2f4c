"""The worker's sign of life to its own main process: a clock reading whose age tells how long it has stood still.

A process that is frozen, or stuck in the kernel, is not dead: no parent-death signal, no exit status tells of it.
The reading is of the monotonic clock, which setting the time of day does not move.
"""

from __future__ import annotations

import mmap
import struct
import time

_SECONDS = struct.Struct("d")


class Heartbeat:
    """Made in the main process before it forks; all forks share its memory."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SECONDS.size)
        self.beat()

    def beat(self) -> None:
        _SECONDS.pack_into(self._memory, 0, time.monotonic())

    @property
    def age_seconds(self) -> float:
        return time.monotonic() - float(_SECONDS.unpack_from(self._memory, 0)[0])
