"""PURE: replays the allocator's own events of one training step.

It finds how many bytes were live at the peak, in which phase, and for what purpose. The events come from
`torch.profiler` (`profile_memory=True`): every allocation and free of the framework's allocator. This is exact for
tensors; memory that libraries take directly from the operating system (oneDNN's scratch pads) is not among the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..results.result import MemoryByKind


@dataclass(frozen=True, slots=True)
class Event:
    """One allocation (`size_bytes` > 0) or free (< 0) of the block at `address`."""

    at_ns: int
    address: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Peak:
    allocated_bytes: int
    phase: str | None
    by_kind: MemoryByKind


def replay(
    events: Iterable[Event],
    phases: Iterable[Phase],
    *,
    parameters_bytes: int,
    optimizer_state_bytes: int,
    carried_bytes: Mapping[int, int] | None = None,
    carried_gradients_bytes: Mapping[int, int] | None = None,
    gradient_addresses: frozenset[int] = frozenset(),
    state_addresses: frozenset[int] = frozenset(),
) -> Peak:
    """Return the peak of a step that began with `parameters_bytes`, `optimizer_state_bytes` and what is carried live.

    `carried_bytes` are the blocks that the previous step left to this one, by address: activations until freed; so
    are `carried_gradients_bytes`, of gradients that are zeroed later or never freed.
    A block counts as gradient or optimizer state if its address is one of those that hold them after the
    step; else as activation if the forward pass made it, and as other (batch, temporaries) if not.
    """
    spans = list(phases)
    ordered = sorted(events, key=lambda event: event.at_ns)
    kept = gradient_addresses | state_addresses  # the last allocation at each of these addresses outlives the step
    last_use = {e.address: i for i, e in enumerate(ordered) if e.size_bytes > 0 and e.address in kept}
    live = {address: ("activations", size) for address, size in (carried_bytes or {}).items()}
    live |= {address: ("gradients", size) for address, size in (carried_gradients_bytes or {}).items()}
    totals = {"gradients": 0, "optimizer_state": 0, "activations": 0, "other": 0}
    for kind, size in live.values():
        totals[kind] += size
    base = parameters_bytes + optimizer_state_bytes + sum(totals.values())
    now = peak = base
    at_peak, peak_phase = dict(totals), None
    for index, event in enumerate(ordered):
        if event.size_bytes < 0:
            kind, size = live.pop(event.address, ("", 0))
            if kind:
                totals[kind] -= size
                now -= size
            continue
        phase = next((s.name for s in spans if s.start_ns <= event.at_ns <= s.end_ns), None)
        is_last = last_use.get(event.address) == index
        if is_last and event.address in gradient_addresses:
            kind = "gradients"
        elif is_last and event.address in state_addresses:
            kind = "optimizer_state"
        else:
            kind = "activations" if phase == "forward" else "other"
        live[event.address] = (kind, event.size_bytes)
        totals[kind] += event.size_bytes
        now += event.size_bytes
        if now > peak:
            peak, at_peak, peak_phase = now, dict(totals), phase
    by_kind = MemoryByKind(
        parameters_bytes=parameters_bytes,
        gradients_bytes=at_peak["gradients"],
        optimizer_state_bytes=optimizer_state_bytes + at_peak["optimizer_state"],
        activations_bytes=at_peak["activations"],
        other_bytes=at_peak["other"],
    )
    return Peak(peak, peak_phase, by_kind)
