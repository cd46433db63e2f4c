"""How far a probe is, said now and then, so that a slow one is not taken for one that hangs."""

from __future__ import annotations

import time
from collections.abc import Callable

INTERVAL_SECONDS = 1.0

Progress = Callable[[str, int], None]
"""Told the stage ("memory", "timing" or "kinds") and which step of it, from 1 on, is about to begin."""


def unheard(stage: str, step: int) -> None:
    """For whoever does not want to know."""


class Paced:
    """Passes on at most one step a second, and none in the first second: a short probe says nothing."""

    def __init__(self, tell: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._silent_until = clock() + INTERVAL_SECONDS

    def __call__(self, stage: str, step: int) -> None:
        now = self._clock()
        if now >= self._silent_until:
            self._silent_until = now + INTERVAL_SECONDS
            self._tell(stage, step)
