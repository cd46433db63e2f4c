"""PURE: which batch sizes leave the reserve free, and where the largest of them should lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..facts.result import Point, Probe
from ..settings.spec import SearchSpec
from .allowed_sizes import AllowedSizes

EDGE_PROBES = 2  # at most so many find the largest size that leaves the reserve free
ABOUT = 1.01
"""Two sizes within this factor count as taking the same memory, or as the same size."""
NEAR = 1.05
"""A measured size within this factor of the expected edge of the reserve counts as the largest that leaves it free."""


def allowed_bytes(limit_bytes: int, reserve_fraction: float) -> int:
    return int(limit_bytes * (1 - reserve_fraction))


def requested_fraction(reserve_fraction: float, reserve_bytes: int | None, limit_bytes: int) -> float:
    """Return the share of the memory that is requested to be left free: bytes stand in place of a share."""
    return reserve_fraction if reserve_bytes is None else reserve_bytes / limit_bytes


def reserve_of(spec: SearchSpec, limit_bytes: int, probes: Sequence[Probe] = (), largest: int = 0) -> float:
    """Return the share of the memory to leave free: no less than the starts of the largest size differed by."""
    requested = requested_fraction(spec.reserve_fraction, spec.reserve_bytes, limit_bytes)
    counted = [p for p in probes if spec.starts_anew and p.batch_size == largest and p.fits]
    taken = [p.memory_bytes for p in counted if p.memory_bytes is not None]
    return max(requested, (max(taken) - min(taken)) / limit_bytes) if taken else requested


def sizes_with_reserve(points: Mapping[int, Point], limit_bytes: int, reserve_fraction: float) -> frozenset[int]:
    """Return the sizes that leave the reserve free; else those near the smallest, whose peak is the optimizer's."""
    least = points[min(points)].memory_bytes or 0
    allowed = max(allowed_bytes(limit_bytes, reserve_fraction), least * ABOUT)
    keeping = {s for s, p in points.items() if p.memory_bytes is not None and p.memory_bytes <= allowed}
    return frozenset(keeping or {min(points)})


def edge_size(points: Mapping[int, Point], limit_bytes: int, reserve_fraction: float) -> int | None:
    """Interpolate the largest size with the reserve; None if a measured one is within 1 % below, or no neighbour is."""
    allowed = allowed_bytes(limit_bytes, reserve_fraction)
    memory = {s: p.memory_bytes for s, p in points.items() if p.memory_bytes is not None}
    below = max((s for s, b in memory.items() if b <= allowed), default=None)
    above = min((s for s, b in memory.items() if b > allowed and (below is None or s > below)), default=None)
    if below is None or above is None:
        return None
    size = below + int((above - below) * (allowed - memory[below]) / (memory[above] - memory[below]))
    return size if size > below * ABOUT else None


def largest_with_reserve(
    points: Mapping[int, Point], limit_bytes: int, reserve_fraction: float, rule: AllowedSizes | None = None
) -> int | None:
    """Return the largest measured size, allowed by the script, that leaves the reserve free; else None.

    Also None where a clearly larger size should do so but was not measured, as after a search that ran out of time.
    """
    allowed = allowed_bytes(limit_bytes, reserve_fraction)
    size = max((s for s, p in points.items() if p.memory_bytes is not None and p.memory_bytes <= allowed), default=None)
    expected = edge_size(points, limit_bytes, reserve_fraction)
    if expected is not None and rule is not None:
        expected = rule.at_most(expected)
    return None if size is None or (expected is not None and expected > size * NEAR) else size
