"""Counts the steps of an optimizer that is made anew, as in each epoch, as those of one: no other would make enough."""

from __future__ import annotations

import weakref
from typing import Any


class Stepped:
    """The optimizers that made a step, each with the number under which its steps are counted.

    It is the `id` of the first of its class over the same weights. One made anew may live beside that for a while, as a
    learning rate schedule keeps it; nothing is collected for it, as the memory that it holds is the training's.
    """

    def __init__(self) -> None:
        self.numbers: Any = weakref.WeakKeyDictionary()
        self.first: dict[tuple[Any, ...], int] = {}

    def number(self, optimizer: Any) -> int:
        """Return the number of an optimizer."""
        known: int | None = self.numbers.get(optimizer)
        if known is None:
            kind = (type(optimizer), *(id(t) for group in optimizer.param_groups for t in group["params"]))
            free = id(optimizer) if id(optimizer) not in self.first.values() else -id(optimizer)
            known = self.numbers[optimizer] = self.first.setdefault(kind, free)
        return known

    def ids(self) -> set[int]:
        """Return those that exist."""
        return set(map(id, self.numbers.keys()))
