"""PURE: replays a recording in an allocator, and returns the memory by kind at the peak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol

from .batch_model import BLOCK_KINDS, WORKSPACES, MemoryBlock, Recording
from .tracing.reductions import Processors, buffer_bytes
from .types import KindBytes


class ReplayedMemory(Protocol):
    """The interface of an allocator that a replay needs."""

    allocated_bytes: int
    peak_allocated_bytes: int

    def allocate(self, key: int, size_bytes: int) -> None: ...
    def free(self, key: int) -> None: ...
    def empty_cache(self) -> None: ...
    def reset_peaks(self) -> None: ...


class PlainMemory:
    """The CPU's memory: bytes are counted as requested, nothing is rounded, cached or reserved."""

    def __init__(self) -> None:
        self.allocated_bytes = self.peak_allocated_bytes = 0
        self._sizes_bytes: dict[int, int] = {}

    def allocate(self, key: int, size_bytes: int) -> None:
        self._sizes_bytes[key] = size_bytes
        self.allocated_bytes += size_bytes
        self.peak_allocated_bytes = max(self.peak_allocated_bytes, self.allocated_bytes)

    def free(self, key: int) -> None:
        self.allocated_bytes -= self._sizes_bytes.pop(key)

    def empty_cache(self) -> None:
        """Do nothing: there is no cache."""

    def reset_peaks(self) -> None:
        self.peak_allocated_bytes = self.allocated_bytes


@dataclass(frozen=True, slots=True)
class ReplayPeak:
    """The highest point of a replay: the block whose allocation reached it, and what was live then."""

    block: MemoryBlock | None
    by_kind: KindBytes


@dataclass(frozen=True, slots=True)
class CardConstants:
    """The properties of a card that decide the sizes of blocks; the CPU has none of them."""

    workspace_bytes: int = 0
    processors: Processors | None = None


def play(recording: Recording, memory: ReplayedMemory, card: CardConstants = CardConstants()) -> None:
    """Replay the steps in `memory` like a probe: cache emptied and peaks reset once the model is loaded."""
    skeleton = recording.skeleton
    sizes = sizes_on(card, recording)
    start = skeleton.step_starts[0] if skeleton.step_starts else 0
    _play(skeleton.events[:start], sizes, memory)
    memory.empty_cache()
    memory.reset_peaks()
    _play(skeleton.events[start:], sizes, memory)


def _play(events: Sequence[int], sizes: Sequence[int], memory: ReplayedMemory) -> None:
    allocate, free = memory.allocate, memory.free
    for event in events:
        if event >= 0:
            allocate(event, sizes[event])
        else:
            free(~event)


def sizes_on(card: CardConstants, recording: Recording) -> list[int]:
    """Return the sizes of all blocks, including those that the card decides."""
    sizes = list(recording.sizes_bytes)
    for index, block in enumerate(recording.skeleton.blocks):
        if block.kind == WORKSPACES:
            sizes[index] = card.workspace_bytes
    if card.processors is not None:
        buffer_of = cache(partial(buffer_bytes, processors=card.processors))  # layers repeat the same sums
        for index, sum_ in recording.sums():
            sizes[index] = buffer_of(sum_)
    return sizes


def play_and_explain(recording: Recording, memory: ReplayedMemory, card: CardConstants = CardConstants()) -> ReplayPeak:
    """Do the same as `play`, and return what held the memory at the peak of the allocated bytes."""
    skeleton = recording.skeleton
    sizes = sizes_on(card, recording)
    start = skeleton.step_starts[0] if skeleton.step_starts else 0
    taken, peak_at, highest = [0] * len(sizes), start - 1, 0
    for position, event in enumerate(skeleton.events):
        if position == start:
            memory.empty_cache()
            memory.reset_peaks()
            highest = memory.allocated_bytes
        if event < 0:
            memory.free(~event)
            continue
        before = memory.allocated_bytes
        memory.allocate(event, sizes[event])
        taken[event] = memory.allocated_bytes - before
        if position >= start and memory.allocated_bytes > highest:
            highest, peak_at = memory.allocated_bytes, position
    last = skeleton.events[peak_at] if peak_at >= start else None
    totals = dict.fromkeys(BLOCK_KINDS, 0)
    for event in skeleton.events[: peak_at + 1]:
        index = event if event >= 0 else ~event
        totals[skeleton.blocks[index].kind] += taken[index] if event >= 0 else -taken[index]
    by_kind = KindBytes(**{f"{kind}_bytes": size for kind, size in totals.items()})
    return ReplayPeak(None if last is None else skeleton.blocks[last], by_kind)
