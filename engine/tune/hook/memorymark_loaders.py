"""Follows a training's loaders: the rows of a script's own batches, and empty passes, which may go on for ever."""

from __future__ import annotations

import weakref
from typing import Any

from memorymark_rows import length_of
from memorymark_seen import NO_BATCH

MOST_EMPTY_PASSES = 8
LOADERS: Any = weakref.WeakKeyDictionary()
"""By iterator the loader that made it."""


class Passes:
    """`empty` counts the passes without a batch that no batch and no step followed; `rows` are those of the last."""

    def __init__(self, watched: Any) -> None:
        self.watched, self.empty, self.rows = watched, 0, None
        self.has_stepped = False  # since the last batch
        self.newest: Any = weakref.WeakKeyDictionary()  # by iterator the one that draws in its place

    def newest_of(self, iterator: Any) -> Any:
        return self.newest.get(iterator, iterator)

    def goes_on(self) -> None:
        self.empty = 0

    def stepped(self) -> None:
        self.empty, self.has_stepped = 0, True

    def draw(self, iterator: Any, draw: Any) -> Any:
        """Draw a batch. Where steps are timed in several turns, a loader begins again at its end, as in a next pass."""
        try:
            batch = draw(self.newest_of(iterator))
        except StopIteration:
            is_timed = self.watched.settings.get("seat") and self.watched.memory is not None
            if not is_timed or not self.has_stepped or iterator not in LOADERS:
                raise
            self.watched.mark("evaluated")  # the step that ends next takes longer for it
            self.newest[iterator] = LOADERS[iterator]._get_iterator()  # its own `__iter__` may be a library's
            batch = draw(self.newest[iterator])
        self.has_stepped = False
        return batch

    def ended(self, iterator: Any) -> None:
        """Count a pass that ended, and end the start where a loop goes on without a batch."""
        if iterator._num_yielded == 0:
            self.empty, self.rows = self.empty + 1, length_of(iterator._dataset)
            if self.empty == MOST_EMPTY_PASSES:
                self.watched.end("error", NO_BATCH, "")


def number_rows(torch: Any, iterators: Any) -> None:
    """Note the loader of each iterator, and how many rows each batch of a sampler of the script's own has."""
    make = iterators.__init__

    def made(iterator: Any, loader: Any, *others: Any, **options: Any) -> None:
        make(iterator, loader, *others, **options)
        LOADERS[iterator] = loader

    iterators.__init__ = made
    number: Any = getattr(iterators, "_next_index", None)
    if number is None:
        return

    def numbered(iterator: Any) -> Any:
        numbers = number(iterator)
        if isinstance(numbers, list) and type(iterator._index_sampler) is not torch.utils.data.BatchSampler:
            at = getattr(iterator, "_send_idx", iterator._num_yielded)  # workers are given numbers ahead
            vars(iterator).setdefault("_memorymark_sizes", {})[at] = len(numbers)
        return numbers

    iterators._next_index = numbered
