"""PURE: replays a recording in an allocator: whether the steps fit, their peak, and what holds it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import Protocol

from .allocator import Allocator, OutOfMemory
from .batch_model import BLOCK_KINDS, BatchModel, MemoryBlock, MemoryModel, Recording, Skeleton
from .gpus import Gpu
from .reductions import Processors, Reduction, buffer_bytes
from .stream_allocator import StreamAllocator
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


Decided = tuple[int, tuple[int, ...]]
"""The sizes that a card decides: of workspaces, and of each buffered sum."""


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


def decided_sizes(card: CardConstants, sums: Iterable[Reduction]) -> Decided:
    if card.processors is None:
        return card.workspace_bytes, ()
    buffer_of = cache(partial(buffer_bytes, processors=card.processors))  # layers repeat the same sums
    return card.workspace_bytes, tuple(map(buffer_of, sums))


def sizes_on(card: CardConstants, recording: Recording) -> list[int]:
    workspace_bytes, buffers_bytes = decided_sizes(card, recording.sums())
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


KEPT_RECORDINGS = 16
"""The recordings of a model that are kept: cards of like memory try the same sizes, and one has a megabyte or so."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The peaks of one replay, the block that reached that of the allocated bytes, and what was live then."""

    allocated_bytes: int
    reserved_bytes: int | None
    block: MemoryBlock | None
    by_kind: KindBytes


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What replays of one model found, by what a card decides, the batch size and the limit in bytes."""

    unmet_peaks_bytes: dict[tuple[Decided, int], int] = field(default_factory=dict)
    """Peaks of replays that met no limit."""
    fits: dict[tuple[Decided, int, int | None], bool] = field(default_factory=dict)
    peaks: dict[tuple[Decided, int, int | None], Peak] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.unmet_peaks_bytes) + len(self.fits) + len(self.peaks)


@dataclass
class Replays:
    """Replays of one model. Each is made once for all cards that decide the same sizes."""

    model: MemoryModel
    expandable_segments: bool = False
    outcomes: Outcomes = field(default_factory=Outcomes)
    _peaks_bytes: dict[tuple[CardConstants, int], int] = field(default_factory=dict)
    """Peaks that were requested: only from those a search begins."""
    _sums: dict[int, tuple[Reduction, ...]] = field(default_factory=dict)
    _decided_sizes: dict[tuple[CardConstants, int], Decided] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._recording = lru_cache(KEPT_RECORDINGS)(self.model.at)

    def peak_bytes(self, gpu: Gpu | None, batch_size: int) -> int:
        """Return the peak of the steps on a device without a limit: reserved bytes, on the CPU allocated ones."""
        key = (card_of(gpu), batch_size)
        if key not in self._peaks_bytes:
            found = (self._decided(gpu, batch_size), batch_size)
            if found not in self.outcomes.unmet_peaks_bytes:
                self._fits_within(gpu, batch_size, None)
            self._peaks_bytes[key] = self.outcomes.unmet_peaks_bytes[found]
        return self._peaks_bytes[key]

    def fits(self, gpu: Gpu | None, batch_size: int, limit_bytes: int) -> bool:
        """Whether the steps run within the limit, if need be by releasing cached segments."""
        if gpu is None:
            return self.peak_bytes(gpu, batch_size) <= limit_bytes  # the limit is never met
        return self._is_unmet(gpu, batch_size, limit_bytes) or self._fits_within(gpu, batch_size, limit_bytes)

    def _is_unmet(self, gpu: Gpu | None, batch_size: int, limit_bytes: int) -> bool:
        """Whether a known peak is within the limit: the steps then run as without one."""
        known = self.outcomes.unmet_peaks_bytes.get((self._decided(gpu, batch_size), batch_size))
        # expandable segments are refused by the size of a whole request, also where a part of it is mapped already
        return known is not None and known <= limit_bytes and not self.expandable_segments

    def _fits_within(self, gpu: Gpu | None, batch_size: int, limit_bytes: int | None) -> bool:
        """Replay the steps. Where the limit was not reached, the peak is noted: it is the same without a limit."""
        key = (self._decided(gpu, batch_size), batch_size, limit_bytes)
        if key in self.outcomes.fits:
            return self.outcomes.fits[key]
        recording = self._recording(batch_size)
        memory = self.memory(gpu, limit_bytes, recording)
        try:
            play(recording, memory, sizes_on(card_of(gpu), recording))
        except OutOfMemory:
            self.outcomes.fits[key] = False
            return False
        if not isinstance(memory, Allocator):
            self.outcomes.unmet_peaks_bytes[key[:2]] = memory.peak_allocated_bytes
        elif memory.retries == 0:
            self.outcomes.unmet_peaks_bytes[key[:2]] = memory.peak_reserved_bytes
        self.outcomes.fits[key] = True
        return True

    def explained(self, gpu: Gpu | None, batch_size: int, limit_bytes: int | None) -> Peak:
        if limit_bytes is not None and self._is_unmet(gpu, batch_size, limit_bytes):
            limit_bytes = None
        key = (self._decided(gpu, batch_size), batch_size, limit_bytes)
        if key not in self.outcomes.peaks:
            recording = self._recording(batch_size)
            memory = self.memory(gpu, limit_bytes, recording)
            held = play_and_explain(recording, memory, sizes_on(card_of(gpu), recording))
            reserved_bytes = memory.peak_reserved_bytes if isinstance(memory, Allocator) else None
            self.outcomes.peaks[key] = Peak(memory.peak_allocated_bytes, reserved_bytes, *held)
        return self.outcomes.peaks[key]

    def known(self, gpu: Gpu | None) -> dict[int, int]:
        wanted = card_of(gpu)
        return {size: peak for (card, size), peak in self._peaks_bytes.items() if card == wanted}

    def memory(self, gpu: Gpu | None, limit_bytes: int | None, recording: Recording) -> ReplayedMemory:
        if gpu is None:
            return PlainMemory()
        if streams := recording.skeleton.streams:
            return StreamAllocator(streams, limit_bytes=limit_bytes, expandable_segments=self.expandable_segments)
        return Allocator(limit_bytes=limit_bytes, expandable_segments=self.expandable_segments)

    def _decided(self, gpu: Gpu | None, batch_size: int) -> Decided:
        key = (card_of(gpu), batch_size)
        if key not in self._decided_sizes:
            self._decided_sizes[key] = self._sizes_decided_by(key[0], batch_size)
        return self._decided_sizes[key]

    def _sizes_decided_by(self, card: CardConstants, batch_size: int) -> Decided:
        if batch_size not in self._sums:
            model = self.model
            at_size = model.sums_at(batch_size) if isinstance(model, BatchModel) else self._recording(batch_size).sums()
            self._sums[batch_size] = tuple(at_size)
        return decided_sizes(card, self._sums[batch_size])


def card_of(gpu: Gpu | None) -> CardConstants:
    return CardConstants() if gpu is None else CardConstants(gpu.cublas_workspace_bytes, gpu.processors)
