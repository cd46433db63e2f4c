"""PURE: whether memory that other processes took caused a refusal.

Every probe stores `beside_bytes`: the device memory in use outside this process's allocator (total - free - reserved),
which is this process's own context and the memory of all other processes. It needs no list of processes, so it also
works in containers, on desktops and for vendors without such a list. A refusal proves something about the training
only if others took no memory that the run was allowed. They take none while the memory limit is below what is left.

Known limit: where a GPU shares the host's memory, all memory of the host's programs counts as others'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..facts.result import CONTEXT_MOST_BYTES, DeviceFacts, Probe
from ..text.units import GIB, MIB
from .unguided import SearchLimits

GROWTH_BYTES = 256 * MIB
"""A growth of `beside_bytes` beyond this since a size fitted belongs to others: kernels loaded later take less."""
GROWTH_BEFORE_FIT_BYTES = GIB
"""The same since the device was opened, when hardly any kernel was loaded."""


def without_overhead(limits: SearchLimits, probes: Sequence[Probe]) -> SearchLimits:
    """Return the limit of a whole device less what is in use outside the allocator's reserve (context, others)."""
    last = next((p for p in reversed(probes) if p.fits and p.device_used_bytes is not None), None)
    if last is None or last.device_used_bytes is None:
        return limits
    overhead = max(last.device_used_bytes - (last.peak_reserved_bytes or 0), 0)
    return replace(limits, memory_bytes=limits.memory_bytes - overhead)


def bytes_taken_by_others(refusal: Probe, probes: Sequence[Probe], device: DeviceFacts) -> int:
    """Return how much of the allowed memory others held at the refusal; 0 where it is too little to matter.

    Memory outside the allocator is compared with the least seen at a fit, with the device's at its opening, and with
    the largest possible context, so that processes of any start time are found.
    """
    if refusal.beside_bytes is None:
        return 0
    least = min((p.beside_bytes for p in probes if p.fits and p.beside_bytes is not None), default=None)
    context_bytes = 0
    if device.beside_bytes is not None and device.others_bytes is not None:
        context_bytes = max(device.beside_bytes - device.others_bytes, 0)
    return (
        _taken(refusal.beside_bytes, least, GROWTH_BYTES, device)
        or _taken(refusal.beside_bytes, device.beside_bytes, GROWTH_BEFORE_FIT_BYTES, device)
        or _taken(refusal.beside_bytes, context_bytes, CONTEXT_MOST_BYTES - context_bytes, device)
    )


def _taken(beside_bytes: int, earlier_bytes: int | None, tolerance_bytes: int, device: DeviceFacts) -> int:
    if earlier_bytes is None:
        return 0
    room_bytes = device.capacity_bytes - earlier_bytes
    allowed_bytes = min(device.limit_bytes or room_bytes, room_bytes)
    taken_bytes = allowed_bytes - (device.capacity_bytes - beside_bytes)
    return taken_bytes if taken_bytes > tolerance_bytes else 0
