"""PURE: what a training run allocates and frees, as a function of the batch size.

A `Recording` has the allocations and frees of a few training steps. Where two sizes have the same order, each block is
affine in the batch: a `BatchModel` of the two gives any other size without a trace. A third recording decides whether
it is accurate; where it is not, `RetracedModel` traces each size that is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ..text.from_json import from_json, to_json
from .reductions import Reduction
from .types import Method

PARAMETERS, BUFFERS, GRADIENTS, STATE = "parameters", "buffers", "gradients", "optimizer_state"
ACTIVATIONS, TEMPORARIES, WORKSPACES = "activations", "temporaries", "workspaces"
COMMUNICATION = "communication"
BLOCK_KINDS = (PARAMETERS, BUFFERS, GRADIENTS, STATE, ACTIVATIONS, TEMPORARIES, WORKSPACES, COMMUNICATION)

TOLERANCE = 0.001
"""Largest relative error of the live bytes at the third size, up to which the line through the other two is used."""


class MemoryBlock(NamedTuple):
    """One allocation without its size. `phase` is None for the batch's creation, `module` where none is known."""

    kind: str
    phase: str | None
    operator: str
    module: str | None = None
    stream: int = 0


class SumBuffer(NamedTuple):
    """A block that holds the partial results of a sum: its index, and what is the same at every batch size."""

    block: int
    is_inner: bool
    vector: int
    accumulator_bytes: int


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The part of a recording that is the same at every batch size.

    `events` has a block's index for its allocation, ~index for its free; what is before the first of `step_starts` is
    the model. The card decides the sizes of blocks of kind "workspaces" and of those of `sum_buffers`.
    """

    blocks: tuple[MemoryBlock, ...]
    events: tuple[int, ...]
    step_starts: tuple[int, ...]
    sum_buffers: tuple[SumBuffer, ...] = ()
    workspaces: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The blocks of kind "workspaces"."""

    def __post_init__(self) -> None:
        found = tuple(index for index, block in enumerate(self.blocks) if block.kind == WORKSPACES)
        object.__setattr__(self, "workspaces", found)

    @property
    def streams(self) -> tuple[int, ...]:
        """The stream of each block; empty where all are of the training's own."""
        found = tuple(block.stream for block in self.blocks)
        return found if any(found) else ()


Counts = tuple[tuple[int, int], ...]
"""For each buffered sum: the number of its results, and of the inputs per result."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The steps at one batch size. `sizes_bytes` are the requested bytes of each block."""

    batch_size: int
    skeleton: Skeleton
    sizes_bytes: Sequence[int]
    counts: Counts = ()

    def sums(self) -> Iterator[Reduction]:
        for buffer, (results, inputs) in zip(self.skeleton.sum_buffers, self.counts, strict=True):
            yield Reduction(results, inputs, buffer.is_inner, buffer.vector, buffer.accumulator_bytes)

    @property
    def last_step_repeats(self) -> bool:
        before, last = self._first_blocks()[-2:]
        blocks, sizes_bytes = self.skeleton.blocks, self.sizes_bytes
        return blocks[before:last] == blocks[last:] and sizes_bytes[before:last] == sizes_bytes[last:]

    def completed_like(self, whole: Recording) -> Recording | None:
        """Return these steps with the last step of `whole` added; None where the steps before it differ."""
        before, last = whole._first_blocks()[-2:]
        starts, sums = whole.skeleton.step_starts, whole.skeleton.sum_buffers
        early_sums = tuple(buffer for buffer in sums if buffer.block < last)
        events = whole.skeleton.events[: starts[-1]]
        if self.skeleton != Skeleton(whole.skeleton.blocks[:last], events, starts[:-1], early_sums):
            return None
        repeated_sums = sum(buffer.block >= before for buffer in early_sums)
        counts = (*self.counts, *self.counts[len(early_sums) - repeated_sums :])
        return Recording(self.batch_size, whole.skeleton, (*self.sizes_bytes, *self.sizes_bytes[before:last]), counts)

    def _first_blocks(self) -> list[int]:
        """Return the first block of each step: blocks are numbered in the order of allocation."""
        return [sum(event >= 0 for event in self.skeleton.events[:start]) for start in self.skeleton.step_starts]

    def peak_live_bytes(self) -> int:
        """Return the most bytes requested at one time, without an allocator's rounding."""
        live = peak = 0
        for event in self.skeleton.events:
            live += self.sizes_bytes[event] if event >= 0 else -self.sizes_bytes[~event]
            peak = max(peak, live)
        return peak


def with_frees_in_order(events: Sequence[int], step_starts: Sequence[int]) -> list[int]:
    """Return the events with consecutive frees sorted: autocast frees by address, which differs between traces."""
    ordered: list[int] = []
    frees: list[int] = []
    starts = frozenset(step_starts)
    for position, event in enumerate(events):
        if frees and (event >= 0 or position in starts):
            ordered += sorted(frees, reverse=True)
            frees = []
        (frees if event < 0 else ordered).append(event)
    return ordered + sorted(frees, reverse=True)


class Tracer(Protocol):
    def __call__(self, batch_size: int, *, without_last_step: bool = False) -> Recording: ...


class MemoryModel(Protocol):
    """Gives the recording of any batch size. `approximate_because` is why an approximate method had to be used."""

    @property
    def method(self) -> Method: ...
    @property
    def approximate_because(self) -> str | None: ...
    def at(self, batch_size: int) -> Recording: ...


@dataclass(frozen=True, slots=True)
class BatchModel:
    """Every block is `base_bytes + per_sample_bytes * batch size`."""

    skeleton: Skeleton
    base_bytes: tuple[int, ...]
    per_sample_bytes: tuple[int, ...]
    traced_batch_sizes: tuple[int, ...]
    method: Method
    approximate_because: str | None = None
    base_counts: Counts = ()
    per_sample_counts: Counts = ()

    def at(self, batch_size: int) -> Recording:
        sizes = [base + slope * batch_size for base, slope in zip(self.base_bytes, self.per_sample_bytes, strict=True)]
        return Recording(batch_size, self.skeleton, sizes, self._counts_at(batch_size))

    def sums_at(self, batch_size: int) -> Iterator[Reduction]:
        """Return the sums alone, where the sizes of all blocks would take most of the time."""
        return Recording(batch_size, self.skeleton, (), self._counts_at(batch_size)).sums()

    def _counts_at(self, batch_size: int) -> Counts:
        return tuple(
            (results + slope[0] * batch_size, inputs + slope[1] * batch_size)
            for (results, inputs), slope in zip(self.base_counts, self.per_sample_counts, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        document: dict[str, Any] = to_json(self)
        return document

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BatchModel:
        return from_json(cls, data)


class RetracedModel:
    """Traces each requested size once, where memory is not affine in the batch size."""

    def __init__(
        self,
        trace: Callable[[int], Recording],
        known: Sequence[Recording],
        method: Method,
        approximate_because: str | None = None,
    ) -> None:
        self.method, self.approximate_because = method, approximate_because
        self._trace = trace
        self._known = {recording.batch_size: recording for recording in known}

    def at(self, batch_size: int) -> Recording:
        if batch_size not in self._known:
            self._known[batch_size] = self._trace(batch_size)
        return self._known[batch_size]


def model_of(
    trace: Tracer,
    batch_sizes: tuple[int, int, int],
    method: Method,
    approximate_because: str | None = None,
) -> MemoryModel:
    """Return an affine model where recordings at three sizes agree. A last step that repeats is traced once only."""
    checked = trace(batch_sizes[-1])
    others: list[Recording | None]
    if len(checked.skeleton.step_starts) > 1 and checked.last_step_repeats:
        others = [trace(size, without_last_step=True).completed_like(checked) for size in batch_sizes[:-1]]
    else:
        others = [trace(size) for size in batch_sizes[:-1]]
    recordings = [*(recording for recording in others if recording is not None), checked]
    affine = None if None in others else affine_model(recordings[0], recordings[1], method, approximate_because)
    if affine is not None and agrees(affine, checked):
        return affine
    return RetracedModel(trace, recordings, method, approximate_because)


def affine_model(
    first: Recording, second: Recording, method: Method, approximate_because: str | None = None
) -> BatchModel | None:
    """Return the line through two recordings; None where they differ in more than sizes, or a slope is not whole."""
    if first.skeleton != second.skeleton:
        return None
    sizes = (first.batch_size, second.batch_size)
    bytes_line = _line(first.sizes_bytes, second.sizes_bytes, sizes)
    results_line, inputs_line = (
        _line([count[i] for count in first.counts], [count[i] for count in second.counts], sizes) for i in (0, 1)
    )
    if bytes_line is None or results_line is None or inputs_line is None:
        return None
    return BatchModel(
        skeleton=first.skeleton,
        base_bytes=bytes_line[0],
        per_sample_bytes=bytes_line[1],
        base_counts=tuple(zip(results_line[0], inputs_line[0], strict=True)),
        per_sample_counts=tuple(zip(results_line[1], inputs_line[1], strict=True)),
        traced_batch_sizes=sizes,
        method=method,
        approximate_because=approximate_because,
    )


def _line(
    first: Sequence[int], second: Sequence[int], at: tuple[int, int]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    step = at[1] - at[0]
    differences = [b - a for a, b in zip(first, second, strict=True)]
    if any(difference % step for difference in differences):
        return None
    slopes = tuple(difference // step for difference in differences)
    return tuple(value - slope * at[0] for value, slope in zip(first, slopes, strict=True)), slopes


def agrees(model: BatchModel, recording: Recording) -> bool:
    if model.skeleton != recording.skeleton or model.at(recording.batch_size).counts != recording.counts:
        return False
    traced, predicted = recording.peak_live_bytes(), model.at(recording.batch_size).peak_live_bytes()
    return abs(predicted - traced) <= TOLERANCE * traced
