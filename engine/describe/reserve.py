"""PURE: the share of the memory that a recommended size is to leave free, and whether it does."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..results.result import Point, RunResult


def keeps_reserve(result: RunResult, point: Point) -> bool:
    """Whether a size leaves the requested reserve; false also where either is unknown."""
    if result.speed is None or point.memory_bytes is None:
        return False
    left = result.waste.capacity_bytes - point.memory_bytes
    return left >= result.waste.capacity_bytes * result.speed.reserve_fraction


def reserve_text(result: RunResult) -> str:
    """Write the requested reserve: "5 %"."""
    return f"{(result.speed.reserve_fraction if result.speed else 0.0) * 100:.4g} %"


def notes_of_reserve(result: RunResult, chosen: Point) -> Iterator[str]:
    """Yield "60 leaves 0.9 % of the memory free; 56 is the largest that leaves 5 %." where it leaves less."""
    if result.speed is None or chosen.memory_bytes is None or keeps_reserve(result, chosen):
        return
    left = max(1 - chosen.memory_bytes / result.waste.capacity_bytes, 0.0)
    other = result.largest_with_reserve
    which = f"{other.batch_size:,} is the largest that" if other else "no measured size"
    # never rounded up to the reserve
    shown = round(left, 3) if round(left, 3) < result.speed.reserve_fraction else math.floor(left * 1000) / 1000
    leaves = f"{chosen.batch_size:,} leaves {shown * 100:.1f} % of the memory free"
    yield f"{leaves}; {which} leaves {reserve_text(result)}."
