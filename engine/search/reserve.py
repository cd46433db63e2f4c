"""PURE: which batch sizes leave the reserve free, and where the largest of them should lie."""

from __future__ import annotations

from collections.abc import Mapping

from ..result import Point

ABOUT = 1.01


def allowed_bytes(limit_bytes: int, reserve_fraction: float) -> int:
    """Return what the recommended size may take."""
    return int(limit_bytes * (1 - reserve_fraction))


def sizes_with_reserve(points: Mapping[int, Point], limit_bytes: int, reserve_fraction: float) -> frozenset[int]:
    """Return the sizes that keep the reserve; where none does, those that take about as little as the smallest.

    Small sizes often take the same memory: that of the optimizer's step, whatever the batch.
    """
    least = points[min(points)].memory_bytes or 0
    allowed = max(allowed_bytes(limit_bytes, reserve_fraction), least * ABOUT)
    keeping = {s for s, p in points.items() if p.memory_bytes is not None and p.memory_bytes <= allowed}
    return frozenset(keeping or {min(points)})


def edge_size(points: Mapping[int, Point], limit_bytes: int, reserve_fraction: float) -> int | None:
    """Return the largest size that should just keep the reserve, by the straight line between its measured neighbours.

    None where a measured size already lies within a hundredth of it, or where nothing lies on either side.
    """
    allowed = allowed_bytes(limit_bytes, reserve_fraction)
    memory = {s: p.memory_bytes for s, p in points.items() if p.memory_bytes is not None}
    below = max((s for s, b in memory.items() if b <= allowed), default=None)
    above = min((s for s, b in memory.items() if b > allowed and (below is None or s > below)), default=None)
    if below is None or above is None:
        return None
    size = below + int((above - below) * (allowed - memory[below]) / (memory[above] - memory[below]))
    return size if size > below * 1.01 else None
