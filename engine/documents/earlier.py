"""Results of earlier builds in the words of today."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from ..results.intervals import Interval
from ..results.result import Reason, RecommendedBy, RunResult, Speed
from ..results.speed_rounds import SpeedClaim
from ..speed.claim import claim_of, is_gain
from ..text.units import format_factor, format_factor_range

R = TypeVar("R", bound=RunResult)

_NOTHING_SAVED: dict[str, Any] = {
    f"per_{span}_usd{end}": None for span in ("run", "year") for end in ("", "_low", "_high")
}


def as_of_today(result: R) -> R:
    """Return a result of an earlier build as the words of today have it; one of today unchanged.

    Earlier builds called the largest size that keeps the reserve recommended wherever speeds did not decide. Only
    compared speeds recommend a size now, so it is what it was: the largest with the reserve. And they recommended
    sizes that are no faster than today's.
    """
    speed = result.speed
    if speed is not None and speed.recommended_by is RecommendedBy.MEMORY_RESERVE:
        if not speed.is_measurable or (result.speedup_low or 0.0) <= 1:
            return _of_the_reserve(result, speed)
        speed = replace(speed, recommended_by=RecommendedBy.SPEED)  # starts in turns, which show a gain
        result = replace(result, speed=speed)
    size, speedup = result.recommended, result.speedup
    is_other = size is not None and size.batch_size != result.current_batch_size
    if is_other and speedup is not None and not is_gain(speedup, result.speedup_low):
        return _without_gain(result, speedup)
    return result


def _of_the_reserve(result: R, speed: Speed) -> R:
    left, least = result.waste.at_recommended_bytes, result.waste.capacity_bytes * speed.reserve_fraction
    keeps_reserve = left is not None and left >= least and result.boundary.reason is not Reason.TIME_BUDGET
    return replace(
        _none_recommended(result, reason=speed.reason or "no gain was shown"),
        largest_with_reserve=result.recommended if keeps_reserve else None,
    )


def _without_gain(result: R, speedup: float) -> R:
    """Recommend none, because "8 is 0.88 to 0.92x as fast as your 4"."""
    low, high, claim = result.speedup_low, result.speedup_high, SpeedClaim.NOTHING
    if low is not None and high is not None:
        claim = claim_of(Interval(low, speedup, high), is_narrow=False)
    faster = format_factor_range(low, high) or format_factor(speedup)
    size = result.recommended.batch_size if result.recommended else 0
    reason = f"{size:,} is {faster} as fast as your {result.current_batch_size:,}"
    return _none_recommended(result, reason=reason, claim=claim)


def _none_recommended(result: R, **of_the_speed: Any) -> R:
    changes = {"is_measurable": False, "recommended_by": RecommendedBy.NOTHING, **of_the_speed}
    return replace(
        result,
        recommended=None,
        batch_size_ratio=None,
        speedup=None,
        speedup_low=None,
        speedup_high=None,
        waste=replace(result.waste, at_recommended_bytes=None, at_recommended_fraction=None),
        savings=replace(result.savings, **_NOTHING_SAVED),
        speed=result.speed and replace(result.speed, **changes),
    )
