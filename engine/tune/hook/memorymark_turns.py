"""Tells calls of modules and steps of optimizers apart that look alike: repeated ones, and those of several threads."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import memorymark_read as read


class Given:
    """What the outermost modules were given since the last step."""

    def __init__(self) -> None:
        self.tensors: dict[int, Any] = {}

    def again(self, torch: Any, *given: Any) -> bool:
        """Whether the first tensor was given before, as in each call of a closure; note it."""
        first = next(iter(read.given_tensors(torch, given)), None)
        if first is None:
            return False
        known, self.tensors[id(first)] = self.tensors.get(id(first)), weakref.ref(first)
        return known is not None and known() is first


class Turns:
    """The threads whose optimizers stepped, and how many train in turns: their steps cannot be told apart."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.trainings = 1

    def step(self, running: int | None) -> bool:
        """Note a step of this thread; whether others step between two of its own, or one runs forward now."""
        now = threading.get_ident()
        if now in self.threads[:-1] or running not in (None, now):
            self.trainings = len({each.ident for each in threading.enumerate()} & {*self.threads, now, running})
        self.threads = [*(each for each in self.threads if each != now), now]
        return self.trainings > 1
