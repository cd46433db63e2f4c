"""Follows a training's loaders: the batches that they give, the rows of a script's own batches, and empty passes."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any

import memorymark_read as read
from memorymark_rows import length_of
from memorymark_seen import NO_BATCH

MOST_EMPTY_PASSES = 8
"""Passes without a batch may go on for ever: after so many that no batch and no step followed the start ends."""


class Loaders:
    """The loaders of a training. `empty` counts the passes without a batch, `rows` are those of the last of these."""

    def __init__(self, watched: Any) -> None:
        self.watched = watched
        self.kinds: list[Any] = []
        self.changes: list[Any] = []
        self.drawing: list[int] = []  # the threads that draw a batch
        self.draws = 0
        self.workers = (0, 0)  # the most of a loader that fed the training, and the batches they make ahead
        self.empty, self.rows = 0, None
        self.has_stepped = False  # since the last batch
        self.made_by: Any = weakref.WeakKeyDictionary()  # iterator -> its loader
        self.newest: Any = weakref.WeakKeyDictionary()  # iterator -> the newer iterator that draws in its place
        self.used: list[int] = []  # the data sets that gave a batch
        self.pass_batches: int | None = None  # of the first loader of the training
        self.unseen: dict[str, Any] = {}

    def see(self, kind: Any) -> None:
        """Change a class of loaders as the others: one of a library may be made without torch's own `__init__`."""
        self.kinds.append(kind)
        for change in self.changes:
            change(self.watched, kind)

    def change(self, change: Any) -> None:
        """Call `change` with the watch and each class of loaders, also those that are imported later."""
        self.changes.append(change)
        for kind in (self.watched.torch.utils.data.DataLoader, *self.kinds):
            change(self.watched, kind)

    def made_iterator(self, make: Any, iterator: Any, loader: Any, *others: Any, **options: Any) -> None:
        make(iterator, loader, *others, **options)
        self.made_by[iterator] = loader

    def numbered(self, number: Any, iterator: Any) -> Any:
        """Note how many rows the next batch has, where the sampler is the script's own."""
        numbers, plain = number(iterator), self.watched.torch.utils.data.BatchSampler
        if isinstance(numbers, list) and type(iterator._index_sampler) is not plain:
            at = getattr(iterator, "_send_idx", iterator._num_yielded)  # workers are given numbers ahead
            vars(iterator).setdefault("_memorymark_sizes", {})[at] = len(numbers)
        return numbers

    def drawn(self, draw: Any, iterator: Any) -> Any:
        watched, torch = self.watched, self.watched.torch
        if watched.forwards.thread not in (None, threading.get_ident()):  # the training does not wait for this thread
            return draw(iterator)
        watched.mark("loading")
        self.drawing.append(threading.get_ident())
        try:
            batch = (watched.epoch or self).draw(iterator, draw)
            self.empty = 0
        except StopIteration:
            self.end_pass(iterator)
            raise
        finally:
            self.drawing.remove(threading.get_ident())  # once: a data set may draw from another loader
            loaded = watched.mark("loaded")
        is_training, inputs = torch.is_grad_enabled(), read.inputs_of(torch, batch)
        rows, shapes = read.rows_drawn(torch, self.newest.get(iterator, iterator)), read.shapes_of(torch, batch)
        self._use(iterator, is_training=is_training)
        watched.mark("batch", is_training, *inputs, *rows, shapes)
        watched.seen.count("batches")
        watched.seen.put("batch_size", (inputs[0] or [0])[0])
        watched.steps.own_seconds += time.monotonic() - loaded
        return batch

    def _use(self, iterator: Any, *, is_training: bool) -> None:
        if id(iterator._dataset) not in self.used:
            self.used.append(id(iterator._dataset))
        if not is_training:
            return
        if self.pass_batches is None and iterator._dataset_kind == 0:
            self.pass_batches = length_of(iterator._index_sampler)
        self.draws += 1
        workers = iterator._num_workers
        self.workers = max(self.workers, (workers, workers * (getattr(iterator, "_prefetch_factor", 0) or 0)))

    def draw(self, iterator: Any, draw: Any) -> Any:
        """Draw a batch. Where steps are timed in several turns, a loader begins again at its end, as in a next pass."""
        watched = self.watched
        try:
            batch = draw(self.newest.get(iterator, iterator))
        except StopIteration:
            is_in_turns = watched.settings.get("seat") and watched.is_timing
            if not is_in_turns or not self.has_stepped or iterator not in self.made_by:
                raise
            watched.mark("evaluated")  # the step that ends next takes longer for it
            self.newest[iterator] = self.made_by[iterator]._get_iterator()  # its own `__iter__` may be a library's
            batch = draw(self.newest[iterator])
        self.has_stepped = False
        return batch

    def stepped(self) -> None:
        self.empty, self.has_stepped = 0, True

    def end_pass(self, iterator: Any) -> None:
        """Count a pass that ended, and end the start where a loop goes on without a batch."""
        if iterator._num_yielded == 0:
            self.empty, self.rows = self.empty + 1, length_of(iterator._dataset)
            if self.empty == MOST_EMPTY_PASSES:
                self.watched.end("error", NO_BATCH, "")

    def note_unseen(self) -> None:
        """Note what a start that ends after a few steps cannot have met, as far as the script shows it."""
        loaders = read.objects_of(self.watched.torch.utils.data.DataLoader)
        weights = {id(each): each for module in self.watched.forwards.parameters for each in module.parameters()}
        self.unseen = {
            "pass_batches": self.pass_batches,
            "unused_loaders": sum(id(each.dataset) not in self.used for each in loaders),
            "frozen_weights": sum(not each.requires_grad for each in weights.values()),
            "weights": len(weights),
        }
