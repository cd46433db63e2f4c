"""PURE: whether memory that other processes took caused a refusal.

On every outcome a probe keeps `beside_bytes`: what the device holds beside this process's allocator, its own context
and everybody else's memory alike (total - free - reserved). It needs no list of processes, so containers, desktops
and vendors without such a list are covered. A refusal is evidence of the training only if others took nothing of
what the run was allowed. Under a memory limit below what is left, they take nothing.

Known limit: where a GPU shares the host's memory, whatever the host does counts as others'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..result import CONTEXT_MOST_BYTES, DeviceFacts, Probe
from ..units import GIB, MIB
from .unguided import Limits

GROWTH_BYTES = 256 * MIB
"""More than this above a size that fitted belongs to others: kernels that are loaded later take less."""
GROWTH_BEFORE_FIT_BYTES = GIB
"""The same above what was held when the device was opened, when hardly any kernel was loaded."""


def without_overhead(limits: Limits, probes: Sequence[Probe]) -> Limits:
    """Return the limit of a whole device less what it holds beside the allocator's reserve (context, others)."""
    last = next((p for p in reversed(probes) if p.fits and p.device_used_bytes is not None), None)
    if last is None or last.device_used_bytes is None:
        return limits
    overhead = max(last.device_used_bytes - (last.peak_reserved_bytes or 0), 0)
    return replace(limits, memory_bytes=limits.memory_bytes - overhead)


def bytes_taken_by_others(refusal: Probe, probes: Sequence[Probe], device: DeviceFacts) -> int:
    """Return the bytes that others took of what the run was allowed, as the refusal saw them; 0 for none to speak of.

    Compared with the least that was ever held beside a size that fitted, with what was held when the device was
    opened, and with the largest context there is: so a tenant counts whether it came before or during the run.
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
