"""Shortens a training to the parts that decide its memory: the largest batches, evaluation, checkpoints.

Used by `memorymark_watch.py` for a whole run only. Each pass of a DataLoader over its data begins with a batch of the
largest rows. A pass of the training goes on with ordinary and largest batches, gives the short last batch, and ends:
so the script soon reaches its evaluation, its checkpoint, its next epoch and its later stages. A first evaluation goes
on for a while, since it may hold all outputs. Batches of largest rows replace drawn ones: no pass has more than before.

The start goes on to the script's own end, or until `WHOLE_SECONDS` or `WHOLE_STEPS` are over. Ranks of a group end at
the same step, two into the second pass.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Sized
from contextlib import nullcontext
from itertools import cycle, islice
from math import isqrt
from typing import Any

from memorymark_rows import attributes_restored, largest_rows, length_of

SECOND_PASS_STEPS = 2
LATER_STEPS = 3  # of each optimizer in a pass after the first: its state is made in one, and the second holds it
WHOLE_SECONDS, WHOLE_STEPS = 30.0, 400
EVALUATED = 4  # fewest batches of an evaluation; a loader may draw one or two before they are used
EVALUATION_SECONDS = 20.0
LOST = 8  # multiple of the wanted steps after which a script counts as never beginning its data again
BATCHES_WHILE_IDLE = 100  # of a pass while an optimizer has made no step: a script may let it wait for some
UNNOTED = ("rows", "recognised_by")  # for the starts alone
NOT_SHORTENED = "not-shortened"  # a file next to the rows: this script fails where a pass ends early


class Pass:
    """One pass of a loader over its data, and the training's progress when it began."""

    def __init__(self, data: int, watched: Any) -> None:
        self.data, self.drawn, self.is_over, self.began = data, 0, False, time.monotonic()
        self.has_evaluated = False  # whether a module that has trained was evaluated in the pass
        self.is_counted = False  # whether the pass counts among those that trained
        self.steps, self.steps_before = watched.steps.least(), dict(watched.steps.counts)
        self.forwards, self.evaluations = watched.forwards.trained, watched.forwards.evaluated

    def is_one_batch_of_training(self, watched: Any) -> bool:
        """Whether the pass was left after one batch that was trained, as by `next(iter(loader))`."""
        is_left = self.drawn == 1 and not self.is_over
        return is_left and self.has_trained(watched) and watched.forwards.evaluated == self.evaluations

    def has_trained(self, watched: Any) -> bool:
        return bool(watched.forwards.trained > self.forwards)

    def steps_made(self, watched: Any) -> int:
        made = (count - self.steps_before.get(each, 0) for each, count in watched.steps.counts.items())
        return min((count for count in made if count), default=0)


class Data:
    """The record of one data set and its largest rows. It holds no reference to the data set, which may be freed."""

    def __init__(self, dataset: Any) -> None:
        self.is_same = same_as(dataset)
        self.known: Any = None
        self.rows_given = 0
        self.is_evaluated = False  # whether a pass that has ended evaluated the data
        self.noted: dict[str, Any] = {}


def same_as(dataset: Any) -> Callable[[Any], bool]:
    """Return a function that recognises this data set, even if another one gets its address later."""
    try:
        reference = weakref.ref(dataset)
    except TypeError:  # a list
        address, length = id(dataset), length_of(dataset)
        return lambda other: id(other) == address and length_of(other) == length
    return lambda other: reference() is other


def rows_of_a_batch(torch: Any, batches: Any) -> int | None:
    """Return how many rows each batch has in this process; None where the script's own batch sampler chooses them."""
    parts = 1
    while type(batches) is not torch.utils.data.BatchSampler:
        if getattr(batches, "split_batches", False):  # accelerate: each process takes its part of a batch
            parts *= batches.num_processes
        if (batches := getattr(batches, "batch_sampler", None)) is None:
            return None
    return int(batches.batch_size) // parts


def is_for_largest(number: int) -> bool:
    """Whether this number's batch has the largest rows: all but 1, 3, 6, 10, ...: such gaps fit no script's period."""
    return number == 0 or isqrt(8 * number + 1) ** 2 != 8 * number + 1


class Epoch:
    """Gives the loaders of one training their batches."""

    def __init__(self, watched: Any, torch: Any) -> None:
        self.watched, self.torch = watched, torch
        self.data: list[Data] = []
        self.has_cut = False
        self.mark_file = os.path.join(watched.settings["rows_folder"] or "", NOT_SHORTENED)
        self.is_shortened = not os.path.exists(self.mark_file)
        self.latest: Any = None
        self.drawn_last: Any = None
        self.first: Any = None
        self.steps_at_second: Any = None
        self.began: float | None = None  # when the first step was made
        self.noted: dict[str, Any] = {"data": [], "checkpoints": 0, "short_batch": None, "passes": 0}
        self.noted |= {"evaluation_batches": 0, "is_evaluation_cut": False, "evaluation_left": None}

    def saved_checkpoint(self, save: Any, *arguments: Any, **options: Any) -> None:
        watched = self.watched
        watched.phase("checkpoint")
        save(*arguments, **options)
        watched.phase("between_steps")
        self.noted["checkpoints"] += not watched.is_timing and watched.forwards.trained > 0

    def began_pass(self, reset: Any, iterator: Any, *arguments: Any, **options: Any) -> None:
        iterator.memorymark_pass = None
        reset(iterator, *arguments, **options)

    def has_seen_all(self, fewest: int, wanted: int) -> bool:
        """Whether to stop reading the memory after a step, where an ordinary start reads `wanted` steps."""
        self.began = self.began or time.monotonic()
        if self.steps_at_second is not None:
            wanted = max(wanted, int(self.steps_at_second) + SECOND_PASS_STEPS)
        elif self.latest:
            wanted *= LOST
        if fewest < wanted or not self.watched.is_alone():
            return fewest >= wanted
        return time.monotonic() > self.began + WHOLE_SECONDS or max(self.watched.steps.counts.values()) >= WHOLE_STEPS

    def seen(self) -> dict[str, Any]:
        """Return what was recorded. A loop that draws ahead, as Lightning's, may have drawn all before it evaluates."""
        batches = max(self.noted["evaluation_batches"], int(self.watched.forwards.evaluated > 0))
        seconds = 0.0 if self.began is None else time.monotonic() - self.began
        of_a_pass = self.watched.loaders.pass_batches
        seen = {"is_shortened": self.is_shortened, "pass_batches": of_a_pass, "seconds": seconds}
        return self.noted | seen | {"evaluation_batches": batches}

    def has_not_trained(self) -> bool:
        trained = self.watched.forwards.trained
        return bool(self.latest and trained and self.latest.forwards == trained)

    def trains(self) -> None:
        """Count evaluation-mode modules on a pass's first batch as frozen parts, not as an evaluation."""
        now = self.latest
        is_training = now is self.drawn_last and (not now.has_evaluated or self.data[now.data].noted.get("is_trained"))
        if self.has_not_trained() and is_training:
            self.watched.forwards.evaluated = now.evaluations

    def draw(self, iterator: Any, draw: Any) -> Any:
        watched, before = self.watched, self.latest
        if watched.is_timing:
            return draw(iterator)
        now = iterator.__dict__.get("memorymark_pass")
        if self.first is None and before is not None and before.has_trained(watched):
            self.first = before
        if now is None and before is not None and before.is_one_batch_of_training(watched):
            self.data[before.data].noted["is_trained"] = True
        if now is None:
            now = self.latest = iterator.memorymark_pass = Pass(self.number_of(iterator._dataset), watched)
            if self.first is not None and now.data == self.first.data and self.steps_at_second is None:
                self.steps_at_second = now.steps
        self.drawn_last = now
        if now.is_over:
            raise StopIteration
        is_evaluation = bool(watched.forwards.evaluated > now.evaluations and watched.forwards.trained == now.forwards)
        self.noted["evaluation_batches"] += is_evaluation
        if now.has_trained(watched) and not now.has_evaluated:
            self.data[now.data].noted["is_trained"] = True
            self.noted["passes"] += not now.is_counted
            now.is_counted = True
        if self.is_shortened and self.is_enough(now, is_evaluation):
            now.is_over = self.has_cut = True
            if is_evaluation and not self.data[now.data].is_evaluated:
                left = (length_of(iterator._index_sampler) or now.drawn) - now.drawn
                self.noted |= {"is_evaluation_cut": True, "evaluation_left": left or None}
            self.data[now.data].is_evaluated |= is_evaluation
            return self.short_batch(iterator)
        is_later = self.first not in (None, now)
        is_largest = (is_later or is_for_largest(now.drawn)) and not is_evaluation
        if is_largest:
            self.know(iterator, now.data)
        try:
            batch = draw(iterator)
        except StopIteration:
            now.is_over = True
            self.data[now.data].is_evaluated |= is_evaluation
            raise
        now.drawn += 1
        return self.largest_batch(iterator, now, batch) if is_largest else batch

    def number_of(self, dataset: Any) -> int:
        """Return the number of a data set, in the order in which they were first seen."""
        for number, each in enumerate(self.data):
            if each.is_same(dataset):
                return number
        self.data.append(Data(dataset))
        return len(self.data) - 1

    def is_enough(self, now: Pass, is_evaluation: bool) -> bool:
        watched = self.watched
        if is_evaluation:
            is_late = self.data[now.data].is_evaluated or time.monotonic() > now.began + EVALUATION_SECONDS
            # ranks that end at different batches wait for each other
            return is_late and watched.is_alone() and now.drawn >= EVALUATED
        if now is self.first:
            is_trained = watched.steps.least() >= now.steps + watched.settings["memory_steps"]
        else:
            is_trained = now.steps_made(watched) >= LATER_STEPS
        return bool(is_trained and (now.drawn >= BATCHES_WHILE_IDLE or not watched.steps.is_one_idle()))

    def is_ended_by_cut(self, kind: Any, message: str) -> bool:
        """Whether ending a pass early has ended the script, as by too few batches: later starts shorten nothing."""
        is_stop = kind is StopIteration or (kind is RuntimeError and message == "generator raised StopIteration")
        if is_stop and self.has_cut:
            with open(self.mark_file, "w"):
                return True
        return False

    def largest_batch(self, iterator: Any, now: Pass, drawn: Any) -> Any:
        data, batches = self.data[now.data], iterator._index_sampler
        is_of_one_size = data.known.get("largest") == data.known.get("smallest") and not data.known.get("collated")
        if not data.known["rows"] or is_of_one_size:
            return drawn
        if now.drawn > 1 and now.drawn == length_of(batches):
            return drawn  # the last one may be shorter
        size, sampler = rows_of_a_batch(self.torch, batches), getattr(batches, "sampler", None)
        size = min(size or 0, data.known["count"], length_of(sampler) or data.known["count"])
        try:
            leading = data.known["leading"]
            at = data.rows_given % leading if size < leading else 0  # a few rows at a time, and in the end all
            batch = self.fetch(iterator, list(islice(cycle(data.known["rows"]), at, at + size)))
            data.rows_given += size
            data.noted["leading_given"] = min(data.rows_given, leading)
            return batch
        except Exception as error:  # noqa: BLE001 - the script may be right to refuse these rows together
            problem = f"no batch could be made of its largest rows: {type(error).__name__}: {error}"[:200]
            data.known["rows"] = []
            data.noted |= {"problem": problem, "looked": 0}
            return drawn

    def know(self, iterator: Any, number: int) -> None:
        """Look through a data set before its first row is drawn, as it may open files with that row."""
        data = self.data[number]
        if data.known is None:
            data.known = self.look_through(iterator, number)
            data.noted |= {name: value for name, value in data.known.items() if name not in UNNOTED}
            self.noted["data"].append(data.noted)

    def look_through(self, iterator: Any, number: int) -> Any:
        dataset, settings = iterator._dataset, self.watched.settings
        if iterator._dataset_kind != 0 or not hasattr(dataset, "__getitem__"):
            return {"rows": [], "looked": 0, "problem": "its rows come one after the other"}
        if rows_of_a_batch(self.torch, iterator._index_sampler) is None:
            return {"rows": [], "looked": 0, "problem": "a batch sampler of its own chooses the rows"}
        name = f"{self.watched.place()[0]}-{number}.json"
        path = os.path.join(settings["rows_folder"], name)
        is_watched = self.watched.cpu.profile is not None
        return largest_rows(
            self.torch,
            dataset,
            path,
            settings["look_through_seconds"],
            collate=iterator._collate_fn,
            in_thread=is_watched,
        )

    def fetch(self, iterator: Any, rows: Any) -> Any:
        kinds, pin = self.torch.utils.data.dataloader._DatasetKind, self.torch.utils.data._utils.pin_memory
        fetcher = kinds.create_fetcher(
            iterator._dataset_kind, iterator._dataset, iterator._auto_collation, iterator._collate_fn, False
        )
        with attributes_restored(iterator._dataset) if iterator._num_workers else nullcontext():
            batch = fetcher.fetch(rows)
        return pin.pin_memory(batch, iterator._pin_memory_device) if iterator._pin_memory else batch

    def short_batch(self, iterator: Any) -> Any:
        batches = iterator._index_sampler
        size: Any = getattr(batches, "batch_size", None)
        sampler: Any = getattr(batches, "sampler", ())
        if (
            iterator._dataset_kind != 0
            or type(batches) is not self.torch.utils.data.BatchSampler
            or getattr(batches, "drop_last", True)
        ):
            raise StopIteration
        left = len(sampler) % size if isinstance(sampler, Sized) else 0
        if not left:
            raise StopIteration
        try:
            batch = self.fetch(iterator, range(left))
        except Exception as error:
            raise StopIteration from error
        if self.first is not None and self.latest.data == self.first.data:
            self.noted["short_batch"] = left
        return batch
