"""PURE: what the hook noted of the processes of one start, and what follows: the hook itself decides nothing.

Where the counts do not show beyond doubt that the command trained the wanted size, there is no probe but a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from ....settings.spec import MEMORY_STEPS
from ..hook.memorymark_seen import SIGNAL
from .memory import LATER_STEP, Memory, cpu_memory, kept_each, longest_evaluation, rise_of_each, shape_given

ROWS, DRAWN, LOADED = 4, 5, 6
"""Where a mark of a batch has the rows of its loader, those of the batch, and all shapes."""
AGAIN, GIVEN = 4, 5
"""Where a mark of a forward pass has whether the step was given the same before, and all shapes."""
EVALUATIONS = 1  # where the mark of the memory that was read counts the evaluations meanwhile
OWN_PEAK, ALLOCATED, HELD = 1, 2, 3
"""Where a card's mark of a step has its own peak, the most since any step, and what was held after it."""
BY_HAND = 0
"""Stands for the optimizer where a script has none, and changes its weights itself."""
BY_LOADER = -1
"""Stands for the dimension of the inputs that is the batch size, where none is and the loader tells it."""
TOTAL = -2
"""Stands for the rows of all calls of a step together."""
BUDGET = -3
"""Stands for the items of one call, as tokens, of which there are up to so many and more than half as many."""
UNSEEN = -4
"""Stands for rows that are in no input, as of a training without modules."""

Shapes = Sequence[Sequence[int]]
"""All dimensions of the first tensors of an input."""


class Forward(NamedTuple):
    """A pass of an outermost module: the module's parameter count, and two dimensions of the input."""

    parameters: int
    shape: tuple[int, ...]
    tokens: int | None
    backward: int | None
    """The number of the following backward pass; None where an earlier pass had the same inputs."""
    given: Shapes | None


class Batch(NamedTuple):
    """A batch of a loader: two dimensions of it, and its rows in the data set; None where the loader does not tell."""

    shape: tuple[int, ...]
    rows: int | None
    loaded: Shapes | None


@dataclass(frozen=True, slots=True)
class Step:
    """One optimizer step with everything since the step before: an evaluation in between counts as part of its time."""

    forwards: tuple[Forward, ...]
    batches: tuple[Batch, ...]
    ended_at: float
    waited_seconds: float
    is_timed: bool
    has_evaluated: bool = False
    collected_seconds: float = 0.0

    @property
    def drawn(self) -> tuple[int | None, ...]:
        return tuple(each.rows for each in self.batches)

    def holds(self, batch_size: int, axis: int) -> int:
        """Return how many micro-batches of that size it consumed; 0 if the model was also given smaller batches.

        A loader may draw ahead, and a module may be called twice for one batch, as those of a GAN: the lower count.
        Without a loader the calls of one backward pass are one micro-batch, as those of a recurrent decoder.
        Smaller ones are the last of a data set, or the parts of a batch that failed as a whole; but a few rows that no
        loader drew are none, as those by which an agent acts.
        """
        if axis == BY_LOADER:
            is_whole = all(rows == batch_size for rows in self.drawn) and not self._is_divided(batch_size)
            return len(self.drawn) if is_whole and batch_size not in self.seen() else 0
        if axis == UNSEEN:
            return int(not self._given())
        if axis < BY_LOADER:
            most = max(self.most_given(axis).values(), default=0)
            return int(most == batch_size if axis == TOTAL else batch_size < 2 * most <= 2 * batch_size)
        of_size = [each for each in self.forwards if _size(each, axis) == batch_size]
        largest = max((each.parameters for each in of_size), default=0)
        smaller, sizes = self.smaller(batch_size, axis), [_size(each, axis) for each in self.batches]
        if smaller and (sum(smaller) >= batch_size or any(size is not None and size < batch_size for size in sizes)):
            return 0
        if self.forwards and not of_size:
            return 0
        called, drawn = [each for each in of_size if each.parameters == largest], sizes.count(batch_size)
        passes = {each.backward for each in called} - {None}  # with new inputs
        return min(drawn, len(called)) if drawn and called else drawn or len(passes)

    def most_given(self, axis: int) -> dict[int, int]:
        """Return the most rows or items that each module was given in a call; of all calls the largest module alone."""
        sizes: dict[int, list[int]] = {}
        for each in self.forwards:
            if each.shape:
                sizes.setdefault(each.parameters, []).append(prod(each.shape[:2]) if axis == BUDGET else each.shape[0])
        if axis == TOTAL:
            return {max(sizes): sum(sizes[max(sizes)])} if sizes else {}
        return {count: max(each) for count, each in sizes.items()}

    def smaller(self, batch_size: int, axis: int) -> list[int]:
        """Return the sizes of fewer rows that the module was called with which was called with that size, too."""
        sizes = [(each.parameters, size) for each in self.forwards if (size := _size(each, axis)) is not None]
        largest = max((count for count, size in sizes if size == batch_size), default=0)
        return [size for count, size in sizes if count == largest and size < batch_size]

    def has_drawn(self, batch_size: int) -> bool:
        return any(each.shape[:1] == (batch_size,) for each in self.batches)

    def _is_divided(self, batch_size: int) -> bool:
        """Return whether the script cut its loader's batch of that size into parts, as after a failure of the whole."""
        sizes = [(each.parameters, each.shape[0]) for each in self.forwards if each.shape]
        is_smaller = bool(sizes) and max(sizes)[1] < batch_size
        return is_smaller and self.has_drawn(batch_size)

    def lengths(self, batch_size: int, axis: int) -> set[int]:
        """Return the other dimension of what had that size, as a length; for loaders' sizes the items given."""
        if axis < 0:
            return set(map(prod, self._given()))
        shapes = [each.shape for each in self.forwards or self.batches]
        return {shape[1 - axis] for shape in shapes if len(shape) == 2 and shape[axis] == batch_size}

    def shapes_given(self) -> dict[Any, Shapes]:
        given = [(each.parameters, each.given) for each in self.forwards if each.given is not None]
        modules = sorted({count for count, _ in given}, reverse=True)
        return {count: _largest(shapes for each, shapes in given if each == count) for count in modules}

    def shapes_loaded(self) -> dict[Any, Shapes]:
        loaded = [each.loaded for each in self.batches if each.loaded is not None]
        return {"loaded": _largest(loaded)} if loaded else {}

    def seen(self) -> set[int]:
        return {shape[0] for shape in self._given()}

    def _given(self) -> list[tuple[int, ...]]:
        given = [each.shape for each in self.forwards if each.shape]
        return given or [each.shape for each in self.batches if each.shape]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the hook noted of one process, as it was written by `hook/memorymark_watch.py`."""

    data: dict[str, Any]

    @property
    def rank(self) -> int:
        return int(self.data["rank"])

    @property
    def world_size(self) -> int:
        return int(self.data["world_size"])

    @property
    def processes(self) -> int:
        return 1 if self.data.get("emulated") else self.world_size

    @property
    def ended(self) -> str:
        """How it ended: `done`, `exit` or `error`; by a `signal` to itself; by the `cut` of a pass in a whole run."""
        return str(self.data["ended"])

    @property
    def is_done(self) -> bool:
        """Whether enough steps were watched, also where the data ended before all that were wanted."""
        return self.ended == "done" or (self.is_to_its_end and len(self.steps()) >= MEMORY_STEPS)

    @property
    def is_to_its_end(self) -> bool:
        return self.ended in ("exit", SIGNAL)

    @property
    def has_failed(self) -> bool:
        return self.ended == "error"

    def marks(self, *names: str) -> list[list[Any]]:
        """Return the marks of these names, without their times."""
        return [mark for _, *mark in self.data["marks"] if mark[0] in names]

    @property
    def has_trained(self) -> bool:
        return bool(self.marks("step"))

    @property
    def has_evaluated(self) -> bool:
        """Whether a module ran in evaluation mode while the memory was read."""
        return any(_at(details, EVALUATIONS) for _, *details in self.marks("memory_read"))

    @property
    def card(self) -> dict[str, Any]:
        card: dict[str, Any] = self.data["card"]
        return card

    @property
    def beside_bytes(self) -> int | None:
        """What its card held beside its allocator; None without one, and for ranks, whose library takes memory too."""
        if "reserved_bytes" not in self.card or self.world_size > 1:
            return None
        card = self.card
        return max(int(card["total_bytes"] - card["free_bytes"] - card["reserved_bytes"]), 0)

    @property
    def refused_allocations(self) -> int:
        """How many allocations its card refused; what the training, or torch, caught."""
        return int(self.card.get("refused_allocations") or 0)

    @property
    def was_told_of_refusals(self) -> bool:
        """Whether Python code was given an out-of-memory error, as far as is known; else torch caught each itself."""
        return self.data.get("raised_out_of_memory") != 0

    @property
    def cards(self) -> int:
        return int(self.data.get("cards", 1))

    @property
    def went_forward_last(self) -> bool:
        """Whether it ended after a forward pass that no optimizer step followed."""
        return [name for name, *_ in self.marks("forward", "step")][-1:] == ["forward"]

    @property
    def gets_own_batches(self) -> bool:
        """Whether a DataLoader was made whose batches are put together elsewhere, so that no size can be set in it."""
        return bool(self.marks("own_batches"))

    def set_by(self) -> set[str]:
        """Return what the hook gave the batch size to: DataLoader, TrainingArguments."""
        return {setter for _, setter, *_ in self.marks("batch_size_set")}

    @property
    def whole_run(self) -> dict[str, Any] | None:
        if (seen := self.data.get("whole_run")) is None:
            return None
        steps = self.read_steps()
        counts = {"optimizers": len(steps), "least_steps": min(steps.values(), default=0)}
        return {**seen, **counts, "is_to_its_end": self.is_to_its_end}

    @property
    def rows_of_a_pass(self) -> int | None:
        """Return how many rows one pass over the training's data has; None where it is not known, or loaders differ."""
        found = {_at(details, ROWS) for _, *details in self.marks("batch") if details[0]}
        return found.pop() if len(found) == 1 else None

    def read_steps(self) -> Counter[int]:
        """Return how many steps of each optimizer were made until the memory was read."""
        names = [mark[1] for mark in self.data["marks"]]
        end = names.index("memory_read") if "memory_read" in names else len(names)
        return _step_counts(self.data["marks"][:end])

    @property
    def empty_passes(self) -> str | None:
        count, rows = self.data.get("empty_passes") or (0, None)
        of = "" if rows is None else f" of {rows:,} rows"
        return f"its DataLoader{of} gave no batch in {count} {'pass' if count == 1 else 'passes'}" if count else None

    @property
    def slowest(self) -> int | None:
        """The optimizer that stepped least often."""
        counts = _step_counts(self.data["marks"])
        return min(counts, key=lambda each: counts[each], default=None)

    def steps(self) -> list[Step]:
        """Return the steps of the optimizer that stepped least often, each with all that came since the one before."""
        slowest, steps = self.slowest, list[Step]()
        forwards, batches = list[Forward](), list[Batch]()
        went_back, waited, collected, loading_since, is_timed, has_evaluated = 0, 0.0, 0.0, None, False, False
        for at, name, *details in self.data["marks"]:
            if name == "forward":
                after = None if _at(details, AGAIN) else went_back
                forwards.append(Forward(details[0], tuple(details[1] or ()), details[2], after, _at(details, GIVEN)))
            elif name == "backward":
                went_back += 1
            elif name == "batch" and details[0]:
                batches.append(Batch(tuple(details[1] or ()), _at(details, DRAWN), _at(details, LOADED)))
            elif name == "begun":  # what ran before was no training
                forwards, batches = [], []
            elif name == "loading":
                loading_since = at
            elif name == "loaded" and loading_since is not None:
                waited += at - loading_since
            elif name == "collected":
                collected += details[0]
            elif name == "memory_read":
                is_timed = True
            elif name == "evaluated":
                has_evaluated = True
            elif name == "step" and details[0] == slowest:
                steps.append(Step(tuple(forwards), tuple(batches), at, waited, is_timed, has_evaluated, collected))
                forwards, batches, waited, collected, has_evaluated = [], [], 0.0, 0.0, False
        return steps

    def memory(self) -> Memory | None:
        """Return the peak; None where nothing was measured."""
        if self.card:
            return self._card_memory()
        if not self.data["events"]:
            return None
        return cpu_memory(*(self.data[each] for each in ("data", "events", "marks", "uncounted_bytes")))

    def _held_in_evaluations(self) -> Iterator[int | None]:
        """Yield what a card held before each batch of an evaluation, and None for each step."""
        for _, name, *details in self.data["marks"]:
            if name == "step":
                yield None
            elif name == "phase" and details[0] == "evaluation" and details[2] is not None:
                yield details[2]

    def _card_memory(self) -> Memory:
        peak = self.card["peak_allocated_bytes"]
        phase, at = None, 0
        for number, (_, name, *details) in enumerate(self.data["marks"]):
            if name == "phase":
                if details[1] is not None and details[1] >= peak:
                    break
                phase, at = details[0], number
            elif name == "step" and len(details) > ALLOCATED and details[ALLOCATED] >= peak:
                break
        if any(details and peak > (details[0] or peak) for _, *details in self.marks("memory_read")):
            phase = LATER_STEP  # reading its phases would be timed, too
        if self.cards > 1:
            phase = None  # those of one card were read, and another one may be the fullest
        shape = shape_given(self.data["marks"], at, phase)
        held = longest_evaluation(self._held_in_evaluations())
        own: dict[Any, list[int]] = {}
        rests = []
        for _, *details in self.marks("step"):
            if len(details) > OWN_PEAK:
                own.setdefault(details[0], []).append(details[OWN_PEAK])
                rests.append(details[HELD])
        return Memory(
            peak,
            phase,
            None,
            None,
            self.card["peak_reserved_bytes"],
            growth_bytes=rise_of_each(rests[1:]),
            shape=shape,
            kept_by_evaluation_bytes=kept_each(held),
            evaluated_bytes=held[-1] if held else 0,
            step_peaks=own,
        )


def _at(details: Sequence[Any], place: int) -> Any:
    return details[place] if len(details) > place else None


def _size(given: Forward | Batch, axis: int) -> int | None:
    """Return the size of one dimension; None where it has no such one, as for all rows or items together."""
    return given.shape[axis] if 0 <= axis < len(given.shape) else None


def _largest(found: Iterable[Shapes]) -> Shapes:
    each_tensor = zip(*found, strict=False)
    return [[max(sizes) for sizes in zip(*shapes, strict=False)] for shapes in each_tensor]


def _step_counts(marks: Sequence[Sequence[Any]]) -> Counter[int]:
    """Count the steps of each optimizer; backward passes by hand only where there is no optimizer."""
    counts = Counter(mark[2] for mark in marks if mark[1] == "step")
    if len(counts) > 1:
        counts.pop(BY_HAND, None)
    return counts
