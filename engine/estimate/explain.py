"""PURE: what would fill the memory at a batch size that does not fit: replays a recording up to the refusal.

A block of the forward pass is an activation if the backward pass allocates before the block is freed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..facts.memory_breakdown import (
    ACTIVATIONS,
    BATCH,
    COMMUNICATION,
    GRADIENTS,
    INPUTS,
    PARAMETERS,
    STATE,
    TEMPORARIES,
    WORKSPACES,
    LiveBlock,
    MemoryBreakdown,
    Moment,
    Request,
    entries_of,
)
from ..facts.progress import BACKWARD, FORWARD
from . import batch_model
from .allocator import Allocator, OutOfMemory
from .batch_model import MemoryBlock, Recording, Skeleton
from .replay import CardConstants, ReplayedMemory, sizes_on

_OF_NO_PHASE = (PARAMETERS, GRADIENTS, STATE, WORKSPACES, COMMUNICATION)
"""The kinds of blocks that are shown as they were recorded, whenever they are live."""


def what_fills(recording: Recording, memory: ReplayedMemory, card: CardConstants, limit_bytes: int) -> MemoryBreakdown:
    """Return what is live when `memory` refuses or first holds more than the limit, or else at the peak."""
    replay = _Replay(recording, sizes_on(card, recording), memory)
    moment, position = replay.to_refusal(limit_bytes)
    is_refusal = moment == "refusal"
    # a refused request is not among the live blocks, the request that reaches the peak is
    live, total_bytes = replay.live_before(position if is_refusal else position + 1)
    requested = recording.skeleton.events[position]
    block = recording.skeleton.blocks[requested]
    kind = _kind(block, is_kept=requested in replay.kept)
    request = Request(replay.sizes_bytes[requested], _module(block), block.phase, block.operator, kind)
    is_caching = is_refusal and isinstance(memory, Allocator)
    return MemoryBreakdown(
        batch_size=recording.batch_size,
        moment=moment,
        method="estimated",
        total_bytes=total_bytes,
        limit_bytes=limit_bytes,
        request=request,
        entries=entries_of(live, total_bytes),
        cached_bytes=memory.reserved_bytes - memory.allocated_bytes if is_caching else None,  # type: ignore[attr-defined]
        step=sum(start <= position for start in recording.skeleton.step_starts),
    )


@dataclass
class _Replay:
    """One replay, with the bytes that each block took, after the allocator's rounding."""

    recording: Recording
    sizes_bytes: Sequence[int]
    memory: ReplayedMemory

    def __post_init__(self) -> None:
        self.taken_bytes = [0] * len(self.sizes_bytes)
        self.kept = _kept_for_backward(self.recording.skeleton)

    def to_refusal(self, limit_bytes: int) -> tuple[Moment, int]:
        """Replay to the first request that is refused or exceeds the limit, or to the peak; return its position."""
        memory, skeleton = self.memory, self.recording.skeleton
        start = skeleton.step_starts[0] if skeleton.step_starts else 0
        highest, at_peak = -1, 0
        for position, event in enumerate(skeleton.events):
            if position == start:
                memory.empty_cache()
            if event < 0:
                memory.free(~event)
                continue
            before = memory.allocated_bytes
            try:
                memory.allocate(event, self.sizes_bytes[event])
            except OutOfMemory:
                return "refusal", position
            self.taken_bytes[event] = memory.allocated_bytes - before
            if memory.allocated_bytes > limit_bytes:
                return "refusal", position
            if memory.allocated_bytes > highest:
                highest, at_peak = memory.allocated_bytes, position
        return "peak", at_peak

    def live_before(self, position: int) -> tuple[list[LiveBlock], int]:
        """Return the blocks that are live before the event at `position`, and their bytes."""
        skeleton = self.recording.skeleton
        live: dict[int, None] = {}
        for event in skeleton.events[:position]:
            if event >= 0:
                live[event] = None
            else:
                del live[~event]
        blocks = []
        for index in live:
            block, size_bytes = skeleton.blocks[index], self.taken_bytes[index]
            phase = None if block.kind in (batch_model.PARAMETERS, batch_model.BUFFERS) else block.phase
            kind = _kind(block, is_kept=index in self.kept)
            blocks.append(LiveBlock(size_bytes, kind, _module(block), phase, block.operator))
        return blocks, sum(block.size_bytes for block in blocks)


def _kind(block: MemoryBlock, *, is_kept: bool) -> str:
    if block.kind in (*_OF_NO_PHASE, batch_model.BUFFERS):
        return PARAMETERS if block.kind == batch_model.BUFFERS else block.kind
    return INPUTS if block.phase is None else ACTIVATIONS if is_kept else TEMPORARIES


def _module(block: MemoryBlock) -> str | None:
    """Return the module; None for workspaces, which belong to the library and not to the first module to multiply."""
    if block.kind == batch_model.WORKSPACES:
        return None
    is_of_batch = block.module is None and block.phase is None and block.kind in (ACTIVATIONS, TEMPORARIES)
    return BATCH if is_of_batch else block.module


def _kept_for_backward(skeleton: Skeleton) -> set[int]:
    """Return blocks of the forward pass still live when the backward pass first allocates, or never freed."""
    kept: set[int] = set()
    live: set[int] = set()
    for event in skeleton.events:
        if event < 0:
            live.discard(~event)
        elif skeleton.blocks[event].phase == FORWARD:
            live.add(event)
        elif skeleton.blocks[event].phase == BACKWARD and live:
            kept |= live
            live = set()
    return kept | live
