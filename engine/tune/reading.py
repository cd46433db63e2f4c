"""PURE: what the hook noted of the processes of one start, and what follows from it.

The hook notes and decides nothing; here it is counted: what each optimizer step consumed, what it held at its peak, and
how long it took. Where the counts do not show beyond doubt that the command trained with the wanted batch size, there
is no probe but a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import Any

from ..spec import MEMORY_STEPS

OPTIMIZER_STEP = "optimizer_step"
TRAINING_PHASES = ("forward", "backward", OPTIMIZER_STEP)
LEAST_RISES = 2
GIVEN = 3  # where a mark of a batch or forward pass lists its tensors
ROWS, DRAWN = 4, 5  # where a mark of a batch has the rows of its loader, and those of the batch
MOST_MOVES = 200_000
"""A step whose memory changes more often has no curve."""
BY_HAND = 0
"""Stands for the optimizer where a script has none, and changes its weights itself."""
BY_LOADER = -1
"""Stands for the dimension of the inputs that is the batch size, where none is and the loader tells it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One optimizer step of a process: the shapes it was given, when it ended, how long it waited for data.

    `forwards` has the first two dimensions of what each outermost module was given, with its count of parameters.
    """

    forwards: tuple[tuple[int, tuple[int, ...], int | None], ...]
    batches: tuple[tuple[int, ...], ...]
    ended_at: float
    waited_seconds: float
    is_timed: bool
    drawn: tuple[int | None, ...] = ()
    """The rows that each batch had in the data set; None where the loader does not tell."""

    def holds(self, batch_size: int, axis: int) -> int:
        """Return how many micro-batches of that size it consumed; 0 where its model was given smaller ones, too.

        A loader may draw ahead, and a module may be called twice for one batch, as those of a GAN: the lower count.
        Smaller ones are the last of a data set, or the parts of a batch that failed as a whole.
        """
        if axis == BY_LOADER:
            is_whole = all(rows == batch_size for rows in self.drawn) and not self._is_divided(batch_size)
            return len(self.drawn) if is_whole and batch_size not in self.seen() else 0
        calls = [size for size, shape, _ in self.forwards if len(shape) > axis and shape[axis] == batch_size]
        largest = max(calls, default=0)
        if any(n == largest and len(shape) > axis and shape[axis] < batch_size for n, shape, _ in self.forwards):
            return 0
        drawn = sum(len(shape) > axis and shape[axis] == batch_size for shape in self.batches)
        if self.forwards and not calls:
            return 0
        called = calls.count(largest)
        return min(drawn, called) if drawn and called else drawn or called

    def _is_divided(self, batch_size: int) -> bool:
        """Return whether the script cut its loader's batch of that size into parts, as after a failure of the whole."""
        sizes = [(count, shape[0]) for count, shape, _ in self.forwards if shape]
        is_smaller = bool(sizes) and max(sizes)[1] < batch_size
        return is_smaller and any(shape[:1] == (batch_size,) for shape in self.batches)

    def lengths(self, batch_size: int, axis: int) -> set[int]:
        """Return the other of the first two dimensions of what had that size: of sequences, their length.

        Of what only the loader counts, the items that the model was given: nodes, or edges in a table of two rows.
        """
        if axis == BY_LOADER:
            return set(map(prod, self._given()))
        shapes = [shape for _, shape, _ in self.forwards] or self.batches
        return {shape[1 - axis] for shape in shapes if len(shape) == 2 and shape[axis] == batch_size}

    def seen(self) -> set[int]:
        """Return the leading dimensions that the step was given."""
        return {shape[0] for shape in self._given()}

    def _given(self) -> list[tuple[int, ...]]:
        """Return the known shapes of what the modules were given; of the batches where none of a module is known."""
        return [shape for _, shape, _ in self.forwards if shape] or [shape for shape in self.batches if shape]


@dataclass(frozen=True, slots=True)
class Memory:
    """The peak of one process, in the phase that held it, and what it held between its steps.

    `batch_peak_bytes` is the peak outside the optimizer's own step: the part that grows with the batch, and lies below
    the whole peak as long as the batch is small.
    """

    peak_bytes: int
    phase: str | None
    resting_bytes: int | None
    batch_peak_bytes: int | None
    reserved_bytes: int | None = None
    growth_bytes: int = 0
    shape: tuple[int, ...] = ()
    """What the model was given at the peak, its first two dimensions; empty in an evaluation and between the steps."""
    kept_by_evaluation_bytes: int = 0
    """What each batch of an evaluation left behind, as where all its outputs are kept."""
    curve: tuple[int, ...] = ()
    """What was held after each change within one step: of the steps after the first, the one that held most."""


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
    def is_emulated(self) -> bool:
        """Whether it stood in for its rank alone."""
        return bool(self.data.get("emulated"))

    @property
    def has_group(self) -> bool:
        """Whether it joined a process group."""
        return bool(self.data.get("has_group"))

    @property
    def processes(self) -> int:
        """How many processes of its start train together."""
        return 1 if self.is_emulated else self.world_size

    @property
    def is_done(self) -> bool:
        """Whether enough steps were watched, also where the data ended before all that were wanted."""
        has_ended_early = self.data["ended"] == "exit" and len(self.steps()) >= MEMORY_STEPS
        return has_ended_early or bool(self.data["ended"] == "done")

    @property
    def has_failed(self) -> bool:
        return bool(self.data["ended"] == "error")

    @property
    def is_ended_by_cut(self) -> bool:
        """Whether it failed because a whole run had ended a pass over its data early."""
        return bool(self.data["ended"] == "cut")

    @property
    def has_trained(self) -> bool:
        return any(mark[1] == "step" for mark in self.data["marks"])

    @property
    def card(self) -> dict[str, Any]:
        card: dict[str, Any] = self.data["card"]
        return card

    def set_by(self) -> set[str]:
        """Return what the hook gave the batch size to: DataLoader, TrainingArguments."""
        return {mark[2] for mark in self.data["marks"] if mark[1] == "batch_size_set"}

    @property
    def whole_run(self) -> dict[str, Any] | None:
        """What a whole run saw of the data and the script, and how often its optimizers stepped in what was read."""
        if (seen := self.data.get("whole_run")) is None:
            return None
        steps = self.read_steps()
        return {**seen, "optimizers": len(steps), "least_steps": min(steps.values(), default=0)}

    @property
    def idle_optimizers(self) -> int:
        """How many optimizers were made and have made no step."""
        return int(self.data.get("idle_optimizers", 0))

    @property
    def rows_of_a_pass(self) -> int | None:
        """Return how many rows one pass over the training's data has; None where it is not known, or loaders differ."""
        batches = [mark[2:] for mark in self.data["marks"] if mark[1] == "batch" and mark[2]]
        found = {details[ROWS] if len(details) > ROWS else None for details in batches}
        return found.pop() if len(found) == 1 else None

    def read_steps(self) -> Counter[int]:
        """Return how many steps of each optimizer were made until the memory was read."""
        names = [mark[1] for mark in self.data["marks"]]
        end = names.index("memory_read") if "memory_read" in names else len(names)
        return _step_counts(self.data["marks"][:end])

    def steps(self) -> list[Step]:
        """Return the steps of the optimizer that stepped least often, each with all that came since the one before."""
        counts = _step_counts(self.data["marks"])
        slowest = min(counts, key=lambda each: counts[each], default=None)
        steps: list[Step] = []
        forwards: list[tuple[int, tuple[int, ...], int | None]] = []
        batches: list[tuple[int, ...]] = []
        drawn: list[int | None] = []
        waited, loading_since, is_timed = 0.0, None, False
        for at, name, *details in self.data["marks"]:
            if name == "forward":
                forwards.append((details[0], tuple(details[1] or ()), details[2]))
            elif name == "batch" and details[0]:
                batches.append(tuple(details[1] or ()))
                drawn.append(details[DRAWN] if len(details) > DRAWN else None)
            elif name == "loading":
                loading_since = at
            elif name == "loaded" and loading_since is not None:
                waited += at - loading_since
            elif name == "memory_read":
                is_timed = True
            elif name == "step" and details[0] == slowest:
                steps.append(Step(tuple(forwards), tuple(batches), at, waited, is_timed, tuple(drawn)))
                forwards, batches, drawn, waited = [], [], [], 0.0
        return steps

    def memory(self) -> Memory | None:
        """Return the peak; None where nothing was measured."""
        if self.card:
            return self._card_memory()
        return cpu_memory(self.data["held"], self.data["events"], self.data["marks"]) if self.data["events"] else None

    def _card_memory(self) -> Memory:
        peak = self.card["peak_allocated_bytes"]
        phase, at = None, 0
        for number, (_, name, *details) in enumerate(self.data["marks"]):
            if name == "phase":
                if details[1] is not None and details[1] >= peak:
                    break
                phase, at = details[0], number
        shape = shape_given(self.data["marks"], at, phase)
        held = [m[4] for m in self.data["marks"] if m[1:3] == ["phase", "evaluation"] and m[4] is not None]
        kept = kept_each(held)
        return Memory(
            peak, phase, None, None, self.card["peak_reserved_bytes"], shape=shape, kept_by_evaluation_bytes=kept
        )


def _step_counts(marks: Sequence[Sequence[Any]]) -> Counter[int]:
    """Count the steps of each optimizer; backward passes by hand only where there is no optimizer."""
    counts = Counter(mark[2] for mark in marks if mark[1] == "step")
    if len(counts) > 1:
        counts.pop(BY_HAND, None)
    return counts


def cpu_memory(
    held: Iterable[Sequence[int]], events: Iterable[Sequence[int]], marks: Sequence[Sequence[Any]]
) -> Memory:
    """Replay the allocator's events: what would live on a device.

    A block made while data is loaded counts once it is handed over with a batch. What else the loading takes would be
    the host's: its scratch, and a batch that the loader keeps for later since its workers answer out of turn.
    """
    live = _Live({address: size for address, size in held})  # noqa: C416 - pairs, each a list
    peak = batch_peak = live.bytes
    phase, peak_phase, phase_at, peak_at = None, None, 0, 0
    rests: list[int] = []
    evaluated: list[int] = []
    curve = _Curve()
    for _, *event in sorted(events, key=lambda each: each[0]):
        before = live.bytes
        if len(event) == 1:
            name, *details = marks[event[0]][1:]
            if name == "phase":
                phase, phase_at = details[0], event[0]
                if phase == "evaluation":
                    evaluated.append(live.bytes)
                if phase == "forward":  # what it was given stands in the mark at its end
                    forward = next((m[2:] for m in marks[event[0] :] if m[1] == "forward"), ())
                    live.give(phase, forward[GIVEN] if len(forward) > GIVEN else [])
            elif name == "batch":
                inputs = details[GIVEN] if len(details) > GIVEN else []
                live.hand_over({address for address, _ in inputs} or set(live.loaded))
                live.give(name, inputs)
            elif name == "loading":
                live.is_loading = True
            elif name == "loaded":
                live.is_loading = False
            elif name == "step":
                phase = None
                rests.append(live.bytes)
                curve.end_step(details[0])
        elif event[1] < 0:
            live.free(event[0])
        else:
            live.allocate(*event)
        if live.bytes != before:
            curve.moves.append(live.bytes)
        if live.bytes > peak:
            peak, peak_phase, peak_at = live.bytes, phase, phase_at
        if phase != OPTIMIZER_STEP:
            batch_peak = max(live.bytes, batch_peak)
    rises = [later - earlier for earlier, later in pairwise(rests[1:])]  # the first step makes the optimizer's state
    growth = min(rises) if len(rises) >= LEAST_RISES and min(rises) * 2 > max(rises) else 0
    shape, resting_bytes = shape_given(marks, peak_at, peak_phase), rests[-1] if rests else None
    return Memory(
        peak,
        peak_phase,
        resting_bytes,
        batch_peak,
        growth_bytes=max(growth, 0),
        shape=shape,
        kept_by_evaluation_bytes=kept_each(evaluated),
        curve=tuple(curve.most),
    )


def kept_each(held: Sequence[int]) -> int:
    """Return what each batch of an evaluation left behind, from what was held before each; 0 unless it rose each time.

    The first batch is left out: what was held before it is the training's.
    """
    rises = [later - earlier for earlier, later in pairwise(held[1:])]
    return sum(rises) // len(rises) if len(rises) >= LEAST_RISES and min(rises) > 0 else 0


def shape_given(marks: Sequence[Sequence[Any]], at: int, phase: str | None) -> tuple[int, ...]:
    """Return the first two dimensions of what the model was given in the phase that began with mark `at`.

    What a forward pass was given stands in the mark at its end. The second dimension is a length only where there are
    tokens; it is left out where there are none.
    """
    if phase not in TRAINING_PHASES:
        return ()
    later = (mark for mark in marks[at:] if mark[1] == "forward")
    earlier = (mark for mark in reversed(marks[:at]) if mark[1] == "forward")
    _, _, _, shape, tokens, *_ = next(later if phase == "forward" else earlier, (0, "", 0, (), None))
    return tuple(shape or ())[: 2 if tokens else 1]


@dataclass
class _Live:
    """The blocks that live at one moment of a replay, by address.

    `given` are inputs of the training that no allocation was seen of: a batch from a worker process, a slice of the
    data set, an array's memory, or one made before the watch began. On a device each would have been copied there, so
    they count until they are freed or the next inputs take their place. `loaded` was made by the loader and not handed
    over yet.
    """

    blocks: dict[int, int]
    loaded: dict[int, int] = field(default_factory=dict)
    given: dict[str, dict[int, int]] = field(default_factory=dict)
    is_loading: bool = False

    def __post_init__(self) -> None:
        self.bytes = sum(self.blocks.values())

    def allocate(self, address: int, size: int) -> None:
        if self.is_loading:
            self.loaded[address] = size
        else:
            # no deallocation is reported of a block that was there before the profiler, as of the first gradients
            self.bytes += size - self.blocks.get(address, 0)
            self.blocks[address] = size

    def free(self, address: int) -> None:
        if self.loaded.pop(address, None) is None:
            self.bytes -= self.blocks.pop(address, 0)
            self.bytes -= sum(inputs.pop(address, 0) for inputs in self.given.values())

    def hand_over(self, addresses: Collection[int]) -> None:
        batch = {address: self.loaded.pop(address) for address in addresses if address in self.loaded}
        self.blocks |= batch
        self.bytes += sum(batch.values())

    def give(self, name: str, inputs: Sequence[Sequence[int]]) -> None:
        self.hand_over({address for address, _ in inputs})
        self.bytes -= sum(self.given.pop(name, {}).values())
        known = self.blocks.keys() | {address for each in self.given.values() for address in each}
        self.given[name] = {address: size for address, size in inputs if address not in known}
        self.bytes += sum(self.given[name].values())


@dataclass
class _Curve:
    """What was held after each change, and of it the step that held most: a short last batch is none of those.

    A step goes from the end of one step of an optimizer to the end of its next one: what the other optimizers of a GAN
    do lies between. The first step of each has no beginning. It makes the optimizer's state.
    """

    moves: list[int] = field(default_factory=list)
    most: list[int] = field(default_factory=list)
    ends: dict[Any, int] = field(default_factory=dict)

    def end_step(self, optimizer: Any) -> None:
        step = self.moves[self.ends[optimizer] :] if optimizer in self.ends else []
        self.ends[optimizer] = len(self.moves)
        if len(step) <= MOST_MOVES and max(step, default=0) >= max(self.most, default=0):
            self.most = step
