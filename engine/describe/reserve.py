"""PURE: the share of the memory that a recommended size is to leave free, and whether it does."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..facts.result import Point, RunResult
from ..text.units import format_bytes, format_percent, round_bytes, round_percent


def free_bytes(result: RunResult, point: Point | None) -> int | None:
    """Return what a size leaves free, below zero where it took more than the limit; None where that is unknown."""
    if point is None or point.memory_bytes is None:
        return None
    return result.waste.capacity_bytes - point.memory_bytes


def keeps_reserve(result: RunResult, point: Point) -> bool:
    """Whether a size leaves the requested reserve; false also where either is unknown."""
    free = free_bytes(result, point)
    if result.speed is None or free is None:
        return False
    return free >= result.waste.capacity_bytes * result.speed.reserve_fraction


def reserve_text(result: RunResult) -> str:
    """Write the reserve as it was requested, "5 %" or "10 GiB"; where starts differed by more, their share."""
    share, requested = result.speed.reserve_fraction if result.speed else 0.0, result.spec.reserve_bytes
    if requested is not None and requested == round(share * result.waste.capacity_bytes):
        return round_bytes(requested)
    return round_percent(share)


def describe_reserve(result: RunResult) -> str:
    """Write what the recommended size leaves free, and where that is less than requested, which size leaves it."""
    chosen, free = result.recommended, free_bytes(result, result.recommended)
    if chosen is None or free is None or result.speed is None:
        return ""
    share = format_percent(max(free, 0) / result.waste.capacity_bytes)
    left = f"{chosen.batch_size:,} leaves {format_bytes(max(free, 0))} free, {share}"
    left += f"; requested: at least {reserve_text(result)}"
    if keeps_reserve(result, chosen):
        return f"{left}."
    if (other := result.largest_with_reserve) is None:
        return f"{left}, which no measured size leaves."
    return f"{left}. The largest that leaves it is {other.batch_size:,}."


def notes_of_reserve(result: RunResult, chosen: Point) -> Iterator[str]:
    """Yield "60 leaves 0.9 % of the memory free; 56 is the largest that leaves 5 %." where it leaves less."""
    free, capacity = free_bytes(result, chosen), result.waste.capacity_bytes
    if result.speed is None or free is None or keeps_reserve(result, chosen):
        return
    left, other = max(free / capacity, 0.0), result.largest_with_reserve
    which = f"{other.batch_size:,} is the largest that" if other else "no measured size"
    # never rounded up to the reserve
    shown = round(left, 3) if round(left, 3) < result.speed.reserve_fraction else math.floor(left * 1000) / 1000
    leaves = f"{chosen.batch_size:,} leaves {shown * 100:.1f} % of the memory free"
    yield f"{leaves}; {which} leaves {reserve_text(result)}."
