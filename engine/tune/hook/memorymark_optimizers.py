"""Counts the steps of optimizers over the same weights together: a script may make a new optimizer each epoch."""

from __future__ import annotations

import weakref
from typing import Any


class Stepped:
    """The optimizers that made a step, each with the number under which its steps are counted.

    It is the `id` of the first of its class over the same weights, which may live beside one made anew: nothing is
    collected, as the memory it holds is the training's. New weights may take the place of others: see `_follows`.
    """

    def __init__(self) -> None:
        self.numbers: Any = weakref.WeakKeyDictionary()
        self.made_at: Any = weakref.WeakKeyDictionary()  # how many steps there were when an optimizer was made
        self.first: dict[tuple[Any, ...], int] = {}
        self.shapes: dict[int, tuple[Any, ...]] = {}
        self.last: dict[int, int] = {}  # which of all steps was the last of a number
        self.steps = 0

    def made(self, optimizer: Any) -> None:
        self.made_at[optimizer] = self.steps

    def number(self, optimizer: Any) -> int:
        known: int | None = self.numbers.get(optimizer)
        if known is None:
            weights = [t for group in optimizer.param_groups for t in group["params"]]
            kind, shapes = ((type(optimizer), *map(part, weights)) for part in (id, lambda t: tuple(t.shape)))
            free = id(optimizer) if id(optimizer) not in self.first.values() else -id(optimizer)
            known = self.first.get(kind, self._follows(optimizer, shapes)) or free
            self.numbers[optimizer] = self.first[kind] = known
            self.shapes[known] = shapes
        self.steps += 1
        self.last[known] = self.steps
        return known

    def _follows(self, optimizer: Any, shapes: tuple[Any, ...]) -> int | None:
        """Return the number that an optimizer over new weights goes on with: an idle one's, alike or gone; or None."""
        living, made_at = set(self.numbers.values()), self.made_at.get(optimizer, 0)
        over = [number for number, last in self.last.items() if last <= made_at]
        alike = [number for number in over if self.shapes[number] == shapes]
        return next((number for number in (*alike, *over) if number in alike or number not in living), None)

    def ids(self) -> set[int]:
        return set(map(id, self.numbers.keys()))
