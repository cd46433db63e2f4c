"""Shortens a training to what its memory hangs on: the largest batches of its data, its evaluation, its checkpoints.

Used by `memorymark_watch.py` for a whole run only. Each pass of a DataLoader over its data begins with a batch of the
largest rows. That of the training goes on with ordinary and largest ones in turns, gives the short last batch, and ends
there: so the script comes to its evaluation, its checkpoint and its next epoch after a few steps. That of an evaluation
goes on for a while, since it may keep the outputs of all its batches.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sized
from itertools import cycle, islice
from typing import Any

from memorymark_rows import largest_rows

SECOND_PASS_STEPS = 2
EVALUATED = 4  # batches of an evaluation at least; a loader may draw one or two before they are used
EVALUATION_SECONDS = 20.0
LOST = 8  # times the wanted steps: enough where a script never begins its data again


class Pass:
    """One pass of a loader over its data, and what the training had done when it began."""

    def __init__(self, data: Any, watched: Any) -> None:
        self.data, self.drawn, self.is_over, self.began = data, 0, False, time.monotonic()
        self.steps, self.forwards, self.evaluations = watched.least_steps(), watched.forwards, watched.evaluations


class Epoch:
    """Gives the loaders of one training their batches."""

    def __init__(self, watched: Any, torch: Any, iterators: Any) -> None:
        self.watched, self.torch = watched, torch
        self.data: dict[int, Any] = {}
        self.latest: Any = None
        self.first: Any = None
        self.steps_at_second: Any = None
        self.noted: dict[str, Any] = {"data": [], "checkpoints": 0, "short_batch": None}
        self.noted |= {"evaluation_batches": 0, "is_evaluation_cut": False}
        save, reset = torch.save, iterators._reset

        def saved(*arguments: Any, **options: Any) -> None:
            watched.phase("checkpoint")
            save(*arguments, **options)
            watched.phase("between_steps")
            self.noted["checkpoints"] += watched.memory is None and watched.forwards > 0

        def began(iterator: Any, *arguments: Any, **options: Any) -> None:
            iterator.memorymark_pass = None
            reset(iterator, *arguments, **options)

        torch.save, iterators._reset = saved, began

    def steps_wanted(self, wanted: int) -> int:
        """Return how many optimizer steps to read the memory of, where an ordinary start reads `wanted`."""
        if self.steps_at_second is not None:
            return max(wanted, int(self.steps_at_second) + SECOND_PASS_STEPS)
        return wanted * LOST if self.latest else wanted

    def has_not_trained(self) -> bool:
        """Whether the pass that began last has trained nothing so far, as that of an evaluation."""
        return bool(self.latest and self.watched.forwards and self.latest.forwards == self.watched.forwards)

    def draw(self, iterator: Any, draw: Any) -> Any:
        """Return the next batch: one of the largest rows, the one that `draw` gives, or the short last one."""
        watched, before = self.watched, self.latest
        if watched.memory is not None:
            return draw(iterator)
        now = iterator.__dict__.get("memorymark_pass")
        if self.first is None and before is not None and watched.forwards > before.forwards:
            self.first = before
        if now is None:
            now = self.latest = iterator.memorymark_pass = Pass(id(iterator._dataset), watched)
            if self.first is not None and now.data == self.first.data and self.steps_at_second is None:
                self.steps_at_second = now.steps
        if now.is_over:
            raise StopIteration
        is_evaluation = bool(watched.evaluations > now.evaluations and watched.forwards == now.forwards)
        self.noted["evaluation_batches"] += is_evaluation
        if self.is_enough(now, is_evaluation):
            now.is_over = True
            self.noted["is_evaluation_cut"] |= is_evaluation
            return self.short_batch(iterator)
        now.drawn += 1
        is_largest = now.drawn % 2 if not is_evaluation else now.drawn == 1
        if is_largest and (rows := self.largest(iterator)):
            return self.fetch(iterator, rows)
        try:
            return draw(iterator)
        except StopIteration:
            now.is_over = True
            raise

    def is_enough(self, now: Pass, is_evaluation: bool) -> bool:
        """Whether a pass has given what is to be seen of it. Later passes over the training's data go on as ever."""
        watched = self.watched
        if now is self.first:
            return bool(watched.least_steps() >= now.steps + watched.settings["memory_steps"])
        is_late = time.monotonic() > now.began + EVALUATION_SECONDS
        return is_evaluation and is_late and now.drawn >= EVALUATED

    def largest(self, iterator: Any) -> Any:
        """Return the numbers of the largest rows of a batch; None where all rows are alike, or are not known."""
        dataset, size = iterator._dataset, getattr(iterator._index_sampler, "batch_size", None)
        known = self.data.get(id(dataset))
        if known is None:
            known = self.data[id(dataset)] = self.look_through(iterator, size)
            self.noted["data"].append({name: value for name, value in known.items() if name != "rows"})
        if not known["rows"] or known["largest"] == known["smallest"]:
            return None
        return list(islice(cycle(known["rows"]), min(size, known["count"])))

    def look_through(self, iterator: Any, size: Any) -> Any:
        dataset, settings = iterator._dataset, self.watched.settings
        if iterator._dataset_kind != 0 or not hasattr(dataset, "__getitem__"):
            return {"rows": [], "looked": 0, "problem": "its rows come one after the other"}
        if not isinstance(size, int):
            return {"rows": [], "looked": 0, "problem": "a batch sampler of its own chooses the rows"}
        name = f"{os.environ.get('RANK', '0')}-{len(self.data)}.json"
        return largest_rows(
            self.torch, dataset, os.path.join(settings["rows_folder"], name), settings["look_through_seconds"]
        )

    def fetch(self, iterator: Any, rows: Any) -> Any:
        """Return the batch of these rows, made as the loader makes its own."""
        kinds, pin = self.torch.utils.data.dataloader._DatasetKind, self.torch.utils.data._utils.pin_memory
        fetcher = kinds.create_fetcher(
            iterator._dataset_kind, iterator._dataset, iterator._auto_collation, iterator._collate_fn, False
        )
        batch = fetcher.fetch(rows)
        return pin.pin_memory(batch, iterator._pin_memory_device) if iterator._pin_memory else batch

    def short_batch(self, iterator: Any) -> Any:
        """Return the last batch of the data, where it is shorter than the others and not dropped."""
        batches = iterator._index_sampler
        size, sampler = getattr(batches, "batch_size", None), getattr(batches, "sampler", ())
        if iterator._dataset_kind != 0 or not isinstance(size, int) or getattr(batches, "drop_last", True):
            raise StopIteration
        left = len(sampler) % size if isinstance(sampler, Sized) else 0
        if not left:
            raise StopIteration
        if self.latest.data == self.first.data:
            self.noted["short_batch"] = left
        return self.fetch(iterator, range(left))
