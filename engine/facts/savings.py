"""PURE: the formulas for unused memory and for money. The speed-up is decided in `speed`."""

from __future__ import annotations

from ..settings.spec import SearchSpec
from ..text.units import format_usd
from .intervals import Interval
from .result import Point, Savings, Waste

_HOUR_SECONDS, _MILLION = 3_600, 1_000_000


def waste(capacity_bytes: int, current: Point | None, recommended: Point | None) -> Waste:
    def unused(point: Point | None) -> int | None:
        if point is None or point.memory_bytes is None:
            return None
        return max(capacity_bytes - point.memory_bytes, 0)

    at_current, at_recommended = unused(current), unused(recommended)
    return Waste(
        capacity_bytes=capacity_bytes,
        at_current_bytes=at_current,
        at_current_fraction=None if at_current is None else at_current / capacity_bytes,
        at_recommended_bytes=at_recommended,
        at_recommended_fraction=None if at_recommended is None else at_recommended / capacity_bytes,
    )


def cost_per_million_samples_usd(price_per_hour_usd: float | None, samples_per_second: float | None) -> float | None:
    """Divide the assumed price of an hour by the samples measured in one; None where either is unknown."""
    if price_per_hour_usd is None or not samples_per_second:
        return None
    return price_per_hour_usd / (samples_per_second * _HOUR_SECONDS) * _MILLION


def savings(assumed: SearchSpec | Savings, speedup: Interval | None, *, is_bound: bool = False) -> Savings:
    """Compute the savings by what a spec or other savings assume; of a speed-up that `is_bound` only their ends."""
    return savings_assuming(
        speedup.value if speedup and not is_bound else None,
        speedup_low=speedup.low if speedup else None,
        speedup_high=speedup.high if speedup else None,
        price_per_hour_usd=assumed.price_per_hour_usd,
        hours_per_run=assumed.hours_per_run,
        runs_per_year=assumed.runs_per_year,
    )


def describe_assumptions(money: Savings) -> str:
    """Write "$0.60/h, 2 h a run, 100 runs a year": what every saving stands on."""
    runs = f"{money.hours_per_run:g} h a run, {money.runs_per_year:,} runs a year"
    return f"{format_usd(money.price_per_hour_usd)}/h, {runs}"


def savings_assuming(
    speedup: float | None,
    *,
    speedup_low: float | None = None,
    speedup_high: float | None = None,
    price_per_hour_usd: float,
    hours_per_run: float,
    runs_per_year: int,
) -> Savings:
    """Compute hours x price x (1 - 1/speedup) for a run and a year, negative where the recommended size is slower."""
    cost = hours_per_run * price_per_hour_usd
    per_run, low, high = (None if x is None else cost * (1 - 1 / x) for x in (speedup, speedup_low, speedup_high))
    return Savings(
        price_per_hour_usd=price_per_hour_usd,
        hours_per_run=hours_per_run,
        runs_per_year=runs_per_year,
        cost_per_run_usd=cost,
        per_run_usd=per_run,
        per_run_usd_low=low,
        per_run_usd_high=high,
        per_year_usd=None if per_run is None else per_run * runs_per_year,
        per_year_usd_low=None if low is None else low * runs_per_year,
        per_year_usd_high=None if high is None else high * runs_per_year,
    )
