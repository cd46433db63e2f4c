"""Follows the loaders of a training: the rows of a batch that the script's own sampler puts together, and empty passes.

A loader that leaves the last batch out gives none where its rows are too few for one. A loop that counts steps then
begins pass after pass for ever.
"""

from __future__ import annotations

from typing import Any

from memorymark_rows import length_of
from memorymark_seen import NO_BATCH

MOST_EMPTY_PASSES = 8


class Passes:
    """`empty` counts the passes without a batch that no batch and no step followed; `rows` are those of the last."""

    def __init__(self, watched: Any) -> None:
        self.watched, self.empty, self.rows = watched, 0, None

    def goes_on(self) -> None:
        self.empty = 0

    def ended(self, iterator: Any) -> None:
        """Count a pass that ended, and end the start where a loop goes on without a batch."""
        if iterator._num_yielded == 0:
            self.empty, self.rows = self.empty + 1, length_of(iterator._dataset)
            if self.empty == MOST_EMPTY_PASSES:
                self.watched.end("error", NO_BATCH, "")


def number_rows(torch: Any, iterators: Any) -> None:
    """Note how many rows each batch of a sampler of the script's own has."""
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
