"""PURE: what lived on the device, and when it was most: the CPU allocator's events replayed with the hook's marks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ....facts.progress import FORWARD, OPTIMIZER_STEP, TRAINING_PHASES

LATER_STEP = "later_step"  # in place of a phase: the peak came after the steps whose phases were read
LEAST_RISES = 2
BLOCK = 4  # what an event of a block has: time, address, bytes, and those of all blocks
GIVEN = 3  # where a mark of a batch or forward pass lists its tensors
MOST_MOVES = 200_000
"""A step whose memory changes more often has no curve."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The peak of one process and its phase; `batch_peak_bytes`, outside the optimizer step, grows with the batch."""

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
    evaluated_bytes: int = 0
    """What was held before the last batch of an evaluation."""
    curve: tuple[int, ...] = ()
    """What was held after each change within one step: of the steps after the first, the one that held most."""
    others_bytes: int = 0
    """The most that other threads had allocated, or freed, since the beginning."""
    step_peaks: Mapping[Any, Sequence[int]] = field(default_factory=dict)
    """The own peak of each step of each optimizer, of those that were read."""

    def evaluation_end_bytes(self, batches_left: int) -> int:
        """Return what an evaluation holds after more batches, if each goes on to leave some behind; 0 if none does."""
        left_bytes = self.kept_by_evaluation_bytes * batches_left
        return self.evaluated_bytes + left_bytes if left_bytes else 0


def cpu_memory(
    data: Iterable[Sequence[int]],
    events: Iterable[Sequence[int]],
    marks: Sequence[Sequence[Any]],
    uncounted_bytes: int = 0,
) -> Memory:
    """Replay the allocator's events, each with what it has given out to all threads: what would live on a device.

    `data` are the blocks that were there before and are the data set's; `uncounted_bytes` are the training's, but no
    allocator's. A block made while data is loaded counts once it is handed over with a batch: what else loading takes,
    as its scratch or a batch kept for later, would be the host's.
    """
    events = sorted(events, key=lambda each: each[0])
    begun = next((each[-1] - each[-2] for each in events if len(each) == BLOCK and each[-1]), 0)
    replay = _Replay(marks, _Live(begun, dict(data), uncounted_bytes))  # type: ignore[arg-type]  # pairs, each a list
    for _, *event in events:
        replay.take(event)
    return replay.memory()


def rise_of_each(levels: Sequence[int]) -> int:
    """Return by how much each level lies above the one before, at least; 0 where they do not all rise alike."""
    rises = [later - earlier for earlier, later in pairwise(levels)]
    is_alike = len(rises) >= LEAST_RISES and min(rises) * 2 > max(rises)
    return max(min(rises), 0) if is_alike else 0


def longest_evaluation(held: Iterable[int | None]) -> list[int]:
    """Return what was held before each batch of the longest evaluation; None stands for a step between two of them."""
    evaluations: list[list[int]] = [[]]
    for each in held:
        if each is None:
            evaluations.append([])
        else:
            evaluations[-1].append(each)
    return max(evaluations, key=len)


def kept_each(held: Sequence[int]) -> int:
    """Return what each batch of an evaluation left, by what was held before each but the first; 0 unless all rose."""
    rises = [later - earlier for earlier, later in pairwise(held[1:])]
    return sum(rises) // len(rises) if len(rises) >= LEAST_RISES and min(rises) > 0 else 0


def shape_given(marks: Sequence[Sequence[Any]], at: int, phase: str | None) -> tuple[int, ...]:
    """Return two dimensions of what the model was given in the phase that began with mark `at`; without tokens one."""
    if phase not in TRAINING_PHASES:
        return ()
    later = (mark for mark in marks[at:] if mark[1] == "forward")  # a pass is marked at its end
    earlier = (mark for mark in reversed(marks[:at]) if mark[1] == "forward")
    _, _, _, shape, tokens, *_ = next(later if phase == FORWARD else earlier, (0, "", 0, (), None))
    return tuple(shape or ())[: 2 if tokens else 1]


class _Replay:
    """The events of a process up to one moment, and the most that lived at any before it."""

    def __init__(self, marks: Sequence[Sequence[Any]], live: _Live) -> None:
        self.marks, self.live = marks, live
        self.peak_bytes = self.batch_peak_bytes = live.bytes
        self.phase: str | None = None
        self.phase_at = self.peak_at = 0
        self.peak_phase: str | None = None
        self.rests: list[int] = []
        self.evaluated: list[int | None] = []
        self.curve, self.steps = _Curve(), _Steps(live.bytes)

    def take(self, event: Sequence[int]) -> None:
        live, before = self.live, self.live.bytes
        if len(event) == 1:
            self._mark(event[0])
        else:
            live.change(*event)
        if live.bytes != before:
            self.curve.moves.append(live.bytes)
            self.steps.most = max(live.bytes, self.steps.most)
        if live.bytes > self.peak_bytes:
            self.peak_bytes, self.peak_phase, self.peak_at = live.bytes, self.phase, self.phase_at
        if self.phase != OPTIMIZER_STEP:
            self.batch_peak_bytes = max(live.bytes, self.batch_peak_bytes)

    def _mark(self, number: int) -> None:
        live = self.live
        _, name, *details = self.marks[number]
        if name == "phase":
            self._begin_phase(details[0], number)
        elif name == "batch":
            inputs = details[GIVEN] if len(details) > GIVEN else []
            live.hand_over({address for address, *_ in inputs} or set(live.loaded))
            live.give(name, inputs)
        elif name in ("loading", "loaded"):
            live.is_loading = name == "loading"
        elif name == "step":
            self.phase = None
            self.rests.append(live.bytes)
            self.evaluated.append(None)
            self.curve.end_step(details[0])
            self.steps.end(details[0], live.bytes)

    def _begin_phase(self, phase: str, number: int) -> None:
        self.phase, self.phase_at = phase, number
        if phase == "evaluation":
            self.evaluated.append(self.live.bytes)
        if phase == FORWARD:  # the mark at the end of the pass has the input's shape
            self.steps.begin(self.live.bytes)
            forward = next((mark[2:] for mark in self.marks[number:] if mark[1] == "forward"), ())
            self.live.give(phase, forward[GIVEN] if len(forward) > GIVEN else [])

    def memory(self) -> Memory:
        evaluated = longest_evaluation(self.evaluated)
        return Memory(
            self.peak_bytes,
            self.peak_phase,
            self.rests[-1] if self.rests else None,
            self.batch_peak_bytes,
            growth_bytes=rise_of_each(self.rests[1:]),  # the first step makes the state
            shape=shape_given(self.marks, self.peak_at, self.peak_phase),
            kept_by_evaluation_bytes=kept_each(evaluated),
            evaluated_bytes=evaluated[-1] if evaluated else 0,
            curve=tuple(self.curve.most),
            others_bytes=self.live.most_of_others,
            step_peaks=self.steps.peaks,
        )


@dataclass
class _Live:
    """What is the training's at one moment of a replay: all that the allocator gave out, but for `data` and `loaded`.

    `given` are inputs of the training beside: a batch from a worker process, a slice of the data set, an array's
    memory. On a device each would have been copied there, so they count until they are freed or the next inputs take
    their place. `loaded` was made by the loader and not handed over yet. Each has bytes by address.
    """

    total: int
    data: dict[int, int]
    uncounted_bytes: int = 0
    mapped: dict[int, int] = field(default_factory=dict)
    loaded: dict[int, int] = field(default_factory=dict)
    given: dict[str, dict[int, int]] = field(default_factory=dict)
    is_loading: bool = False
    of_others: int = 0
    most_of_others: int = 0

    def __post_init__(self) -> None:
        self.bytes = self.total - sum(self.data.values()) + self.uncounted_bytes

    def change(self, address: int, size: int, total: int) -> None:
        """Give a block out, or take it back where its size is below 0; other threads may have done so meanwhile."""
        if total == 0 != self.total + size:  # of several processes, as what a loader's worker sends: not counted
            total = self.total
            self.bytes += size if size > 0 else -self.mapped.pop(address, 0)
            self.mapped |= {address: size} if size > 0 else {}
        else:
            self.of_others += total - self.total - size
            self.most_of_others = max(abs(self.of_others), self.most_of_others)
        self.bytes += total - self.total
        self.total = total
        self.bytes += self.data.pop(address, 0) + self.loaded.pop(address, 0)  # it did not count
        if size < 0:
            self.bytes -= sum(inputs.pop(address, 0) for inputs in self.given.values())
        elif self.is_loading:
            self.loaded[address] = size
            self.bytes -= size

    def hand_over(self, addresses: Collection[int]) -> None:
        self.bytes += sum(self.loaded.pop(address, 0) for address in addresses)

    def give(self, name: str, inputs: Sequence[Sequence[int]]) -> None:
        self.hand_over({address for address, *_ in inputs})
        self.bytes -= sum(self.given.pop(name, {}).values())
        known = self.mapped.keys() | {address for each in self.given.values() for address in each}
        new = [each for each in inputs if each[0] not in known]
        self.given[name] = {address: size for address, size, counts in new if not counts or address in self.data}
        self.bytes += sum(self.given[name].values())


@dataclass
class _Curve:
    """What was held after each change, and of it the step that held most: a short last batch is none of those.

    A step begins where its optimizer's last one ended: what others of a GAN do lies between. The first makes state.
    """

    moves: list[int] = field(default_factory=list)
    most: list[int] = field(default_factory=list)
    ends: dict[Any, int] = field(default_factory=dict)

    def end_step(self, optimizer: Any) -> None:
        step = self.moves[self.ends[optimizer] :] if optimizer in self.ends else []
        self.ends[optimizer] = len(self.moves)
        if len(step) <= MOST_MOVES and max(step, default=0) >= max(self.most, default=0):
            self.most = step


@dataclass
class _Steps:
    """The own peak of each step since its optimizer's last one, without an evaluation or a checkpoint between."""

    most: int
    peaks: dict[Any, list[int]] = field(default_factory=dict)
    since: dict[Any, int] = field(default_factory=dict)
    is_between: bool = False

    def begin(self, held_bytes: int) -> None:
        if self.is_between:
            self.most, self.is_between = held_bytes, False

    def end(self, optimizer: Any, held_bytes: int) -> None:
        self.since = {each: max(peak, self.most) for each, peak in ({optimizer: 0} | self.since).items()}
        self.peaks.setdefault(optimizer, []).append(self.since.pop(optimizer))
        self.since[optimizer] = 0
        self.most, self.is_between = held_bytes, True
