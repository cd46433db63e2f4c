"""Results of earlier builds in the words of today."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from ..results.result import Reason, RecommendedBy, RunResult

R = TypeVar("R", bound=RunResult)

_NOTHING_SAVED: dict[str, Any] = {
    f"per_{span}_usd{end}": None for span in ("run", "year") for end in ("", "_low", "_high")
}


def as_of_today(result: R) -> R:
    """Return a result of an earlier build as the words of today have it; one of today unchanged.

    Earlier builds called the largest size that keeps the reserve recommended wherever speeds did not decide. Only
    compared speeds recommend a size now, so it is what it was: the largest with the reserve.
    """
    speed, waste = result.speed, result.waste
    if speed is None or speed.recommended_by is not RecommendedBy.MEMORY_RESERVE:
        return result
    if speed.is_measurable and (result.speedup_low or 0.0) > 1:  # starts in turns, which show a gain
        return replace(result, speed=replace(speed, recommended_by=RecommendedBy.SPEED))
    left, least = waste.at_recommended_bytes, waste.capacity_bytes * speed.reserve_fraction
    keeps_reserve = left is not None and left >= least and result.boundary.reason is not Reason.TIME_BUDGET
    reason = speed.reason or "no gain was shown"
    return replace(
        result,
        recommended=None,
        batch_size_ratio=None,
        speedup=None,
        speedup_low=None,
        speedup_high=None,
        largest_with_reserve=result.recommended if keeps_reserve else None,
        waste=replace(waste, at_recommended_bytes=None, at_recommended_fraction=None),
        savings=replace(result.savings, **_NOTHING_SAVED),
        speed=replace(speed, is_measurable=False, reason=reason, recommended_by=RecommendedBy.NOTHING),
    )
