"""Reads a pipe by lines, without waiting longer than it may."""

from __future__ import annotations

import os
import select

CHUNK_BYTES = 65_536


class Lines:
    """The lines that come from a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self._pending = descriptor, b""

    def read(self, seconds: float | None) -> str | None:
        """Return the next line within `seconds`, None where none came, and an empty one at the end of the pipe."""
        while b"\n" not in self._pending:
            if not select.select([self.descriptor], [], [], seconds)[0]:
                return None
            if not (chunk := os.read(self.descriptor, CHUNK_BYTES)):
                return ""
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode()
