"""PURE: replays the allocator's events of one step, and finds the purpose of each live block.

A block that autograd saves, or the training loop holds, is an activation; a block with a gradient or optimizer state
after the step counts as such, and belongs to the module of its parameter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..facts.memory_breakdown import (
    ACTIVATIONS,
    BATCH,
    GRADIENTS,
    INPUTS,
    LOSS,
    OPTIMIZER,
    PARAMETERS,
    STATE,
    TEMPORARIES,
    WORKSPACES,
    LiveBlock,
    Moment,
    Request,
)
from ..facts.progress import FORWARD, OPTIMIZER_STEP
from ..facts.result import MemoryByKind

OUTSIDE: dict[str | None, str] = {None: BATCH, FORWARD: LOSS, OPTIMIZER_STEP: OPTIMIZER}
"""The name in place of a module where none is running, by phase. The backward pass needs none: nodes have modules."""


class TracedEvent(NamedTuple):
    """One allocation (`size_bytes` > 0), free (< 0), or the saving of a block for the backward pass (0)."""

    at_ns: int
    address: int
    size_bytes: int
    phase: str | None = None
    module: str | None = None
    operator: str | None = None


@dataclass(frozen=True, slots=True)
class TracedStep:
    """The events of one step in their order, and what is known about its blocks.

    `fixed` are live during the whole step: weights, and existing state. `carried`, by address, are live until they are
    freed: what the previous step returned. `base_bytes` is what was live at the beginning by the device's count, which
    may be more than both because of libraries and rounding. The other addresses are those of the tensors after the
    step, with their modules. `refused` is the request that the device refused, after `refused_at` events.
    """

    events: Sequence[TracedEvent]
    base_bytes: int
    fixed: Sequence[LiveBlock] = ()
    carried: Mapping[int, LiveBlock] = field(default_factory=dict)
    gradients: Mapping[int, str | None] = field(default_factory=dict)
    state: Mapping[int, str | None] = field(default_factory=dict)
    outputs: frozenset[int] = frozenset()
    refused: Request | None = None
    refused_at: int | None = None


@dataclass(frozen=True, slots=True)
class LiveMoment:
    """What was live at the moment. Neither `blocks` nor `total_bytes` include the refused request."""

    moment: Moment
    total_bytes: int
    blocks: tuple[LiveBlock, ...]
    request: Request

    @property
    def by_kind(self) -> MemoryByKind:
        """Return the bytes by kind, where no saving was traced: what the forward pass made counts as activations."""
        found = dict.fromkeys((PARAMETERS, GRADIENTS, STATE, ACTIVATIONS, TEMPORARIES), 0)
        for block in self.blocks:
            passing = ACTIVATIONS if block.phase == FORWARD else TEMPORARIES
            found[block.kind if block.kind in (PARAMETERS, GRADIENTS, STATE) else passing] += block.size_bytes
        parameters, gradients, state, activations, other = found.values()
        return MemoryByKind(parameters, gradients, state, activations, other)


def explain(step: TracedStep, limit_bytes: int | None) -> LiveMoment:
    """Return what was live at the refusal, or when a budget's `limit_bytes` was first exceeded, else at the peak."""
    if step.refused is not None:
        until = len(step.events) if step.refused_at is None else step.refused_at
        return _at(step, until, "refusal", step.refused)
    if limit_bytes is not None and step.base_bytes > limit_bytes:
        return _at(step, 0, "refusal", Request(0, None, None, None))
    totals = _totals(step)
    if limit_bytes is not None:
        over = next((place for place, total in enumerate(totals) if total > limit_bytes), None)
        if over is not None:
            return _at(step, over, "refusal", _request(step, over))
    highest = max(range(len(totals)), key=totals.__getitem__, default=None)
    if highest is None or totals[highest] <= step.base_bytes:
        return _at(step, 0, "peak", Request(None, None, None, None))
    return _at(step, highest + 1, "peak", _request(step, highest))


def after(step: TracedStep) -> dict[int, LiveBlock]:
    return _replayed(step, len(step.events))[0]


def _request(step: TracedStep, place: int) -> Request:
    event = step.events[place]
    block = _block(event, step, is_last=_last_allocations(step.events)[event.address] == place)
    return Request(event.size_bytes, block.module, event.phase, event.operator, block.kind)


def _totals(step: TracedStep) -> list[int]:
    live = {address: block.size_bytes for address, block in step.carried.items()}
    now, totals = step.base_bytes, []
    for event in step.events:
        if event.size_bytes > 0:
            live[event.address] = event.size_bytes
            now += event.size_bytes
        elif event.size_bytes < 0:
            now -= live.pop(event.address, 0)
        totals.append(now)
    return totals


def _at(step: TracedStep, until: int, moment: Moment, request: Request) -> LiveMoment:
    live, total_bytes = _replayed(step, until)
    known_bytes = sum(block.size_bytes for block in step.fixed)
    known_bytes += sum(block.size_bytes for block in step.carried.values())
    blocks = [*step.fixed, *live.values()]
    if step.base_bytes > known_bytes:
        blocks.append(LiveBlock(step.base_bytes - known_bytes, WORKSPACES))
    return LiveMoment(moment, total_bytes, tuple(blocks), request)


def _replayed(step: TracedStep, until: int) -> tuple[dict[int, LiveBlock], int]:
    """Return the live blocks that are not fixed after the first `until` events, and the live bytes."""
    last = _last_allocations(step.events)
    live, total = dict(step.carried), step.base_bytes
    for place, event in enumerate(step.events[:until]):
        if event.size_bytes < 0:
            freed = live.pop(event.address, None)
            total -= 0 if freed is None else freed.size_bytes
        elif event.size_bytes:
            live[event.address] = _block(event, step, is_last=last[event.address] == place)
            total += event.size_bytes
        elif (block := live.get(event.address)) is not None and block.kind == TEMPORARIES:
            live[event.address] = replace(block, kind=ACTIVATIONS)
    return live, total


def _last_allocations(events: Iterable[TracedEvent]) -> dict[int, int]:
    return {event.address: place for place, event in enumerate(events) if event.size_bytes > 0}


def _block(event: TracedEvent, step: TracedStep, *, is_last: bool) -> LiveBlock:
    kind, module = TEMPORARIES, place_of(event)
    if is_last and event.address in step.gradients:
        kind, module = GRADIENTS, step.gradients[event.address]
    elif is_last and event.address in step.state:
        kind, module = STATE, step.state[event.address]
    elif event.phase is None and event.module is None:
        kind = INPUTS
    elif is_last and event.address in step.outputs and event.phase == FORWARD:
        kind = ACTIVATIONS
    return LiveBlock(event.size_bytes, kind, module, event.phase, event.operator)


def place_of(event: TracedEvent) -> str | None:
    """Return the module, or the name in its place: in the forward pass, what is outside of the model is the loss."""
    if event.module is not None:
        return event.module
    return OUTSIDE.get(event.phase)
