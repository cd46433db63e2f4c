"""PURE: replays a recording in an allocator, and returns the memory by kind at the peak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol

from .batch_model import BLOCK_KINDS, MemoryBlock, Recording, Skeleton
from .reductions import Processors, buffer_bytes
from .types import KindBytes


class ReplayedMemory(Protocol):
    """The interface of an allocator that a replay needs."""

    allocated_bytes: int
    peak_allocated_bytes: int

    def allocate(self, key: int, size_bytes: int) -> None: ...
    def free(self, key: int) -> None: ...
    def play(self, events: Sequence[int], sizes_bytes: Sequence[int], taken_bytes: list[int]) -> None: ...
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

    def play(self, events: Sequence[int], sizes_bytes: Sequence[int], taken_bytes: list[int]) -> None:
        for event in events:
            if event < 0:
                self.free(~event)
            else:
                self.allocate(event, sizes_bytes[event])
                taken_bytes[event] = sizes_bytes[event]

    def empty_cache(self) -> None:
        """Do nothing: there is no cache."""

    def reset_peaks(self) -> None:
        self.peak_allocated_bytes = self.allocated_bytes


@dataclass(frozen=True, slots=True)
class CardConstants:
    """The properties of a card that decide the sizes of blocks; the CPU has none of them."""

    workspace_bytes: int = 0
    processors: Processors | None = None


def play(recording: Recording, memory: ReplayedMemory, sizes_bytes: Sequence[int]) -> list[int]:
    """Replay steps like a probe: the loaded model's cache is emptied, peaks reset. Returns each block's bytes."""
    skeleton = recording.skeleton
    start = _first_step(skeleton)
    taken_bytes = [0] * len(sizes_bytes)
    memory.play(skeleton.events[:start], sizes_bytes, taken_bytes)
    memory.empty_cache()
    memory.reset_peaks()
    memory.play(skeleton.events[start:], sizes_bytes, taken_bytes)
    return taken_bytes


def _first_step(skeleton: Skeleton) -> int:
    return skeleton.step_starts[0] if skeleton.step_starts else 0


def decided_sizes(card: CardConstants, recording: Recording) -> tuple[int, tuple[int, ...]]:
    if card.processors is None:
        return card.workspace_bytes, ()
    buffer_of = cache(partial(buffer_bytes, processors=card.processors))  # layers repeat the same sums
    return card.workspace_bytes, tuple(buffer_of(sum_) for _, sum_ in recording.sums())


def sizes_on(card: CardConstants, recording: Recording) -> list[int]:
    workspace_bytes, buffers_bytes = decided_sizes(card, recording)
    sizes = list(recording.sizes_bytes)
    for index in recording.skeleton.workspaces:
        sizes[index] = workspace_bytes
    for buffer, size_bytes in zip(recording.skeleton.sum_buffers, buffers_bytes, strict=False):
        sizes[buffer.block] = size_bytes
    return sizes


def play_and_explain(
    recording: Recording, memory: ReplayedMemory, sizes_bytes: Sequence[int]
) -> tuple[MemoryBlock | None, KindBytes]:
    """Do the same as `play`. Returns the block whose allocation reached the highest peak, and what was live then."""
    skeleton = recording.skeleton
    start, taken = _first_step(skeleton), play(recording, memory, sizes_bytes)
    allocated = sum(_change(event, taken) for event in skeleton.events[:start])
    peak_at, highest = start - 1, allocated
    for position, event in enumerate(skeleton.events[start:], start):
        if event < 0:
            allocated -= taken[~event]
            continue
        allocated += taken[event]
        if allocated > highest:
            highest, peak_at = allocated, position
    last = skeleton.events[peak_at] if peak_at >= start else None
    totals = dict.fromkeys(BLOCK_KINDS, 0)
    for event in skeleton.events[: peak_at + 1]:
        totals[skeleton.blocks[event if event >= 0 else ~event].kind] += _change(event, taken)
    by_kind = KindBytes(**{f"{kind}_bytes": size for kind, size in totals.items()})
    return None if last is None else skeleton.blocks[last], by_kind


def _change(event: int, taken_bytes: Sequence[int]) -> int:
    return taken_bytes[event] if event >= 0 else -taken_bytes[~event]
