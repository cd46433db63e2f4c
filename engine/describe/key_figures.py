"""PURE: the three figures under the answer: what is unused today, which size to use, what that saves."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..results.result import Reason, RunResult, Savings
from ..results.speed_rounds import SpeedClaim
from ..speed.claim import describe_lower_bound
from ..text.today import name_today
from ..text.units import (
    format_bytes,
    format_factor,
    format_least_usd,
    format_percent,
    format_usd,
)
from .result import claim_in, describe_order, is_today_refused

UNUSED, USE, SAVES = "Unused today", "Use", "Saves"
WASTE, GAIN, NOTHING = "waste", "gain", "nothing"
CENT = 0.01


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """One of the three: a word or a number, and what it refers to.

    `is_known`: it is a finding, not a gap. `tone` is waste or gain where another size is recommended.
    """

    title: str
    value: str
    note: str
    is_known: bool = True
    tone: str = ""


def key_figures(result: RunResult, savings: Savings | None = None) -> tuple[KeyFigure, ...]:
    """Return what is unused today, which size to use, and what that saves; none where no size was searched or trained.

    The saving follows the run's own assumptions or those given.
    """
    if result.largest is None or result.spec.check_batch_size is not None:
        return ()
    figures = (_unused(result), _use(result), _saves(result, savings or result.savings))
    size = result.recommended
    if size is None or size.batch_size == result.current_batch_size:
        return figures
    return tuple(
        replace(each, tone=tone) if each.is_known and each.value != NOTHING else each
        for each, tone in zip(figures, (WASTE, GAIN, GAIN), strict=True)
    )


def key_line(result: RunResult) -> str:
    """Write the three figures as one line: "Unused today: 93.7 % · Use: 56 · Saves: at least $0.60 a run"."""
    return " · ".join(f"{figure.title}: {figure.value}" for figure in key_figures(result))


def _unused(result: RunResult) -> KeyFigure:
    today, waste = result.current_batch_size, result.waste
    capacity = format_bytes(waste.capacity_bytes).replace(".0 ", " ")
    if is_today_refused(result):
        return KeyFigure(UNUSED, "does not fit", f"{name_today(today)} runs out of memory in {capacity}")
    if waste.at_current_fraction is None:
        return KeyFigure(UNUSED, "not measured", f"{name_today(today)} was not run", is_known=False)
    return KeyFigure(UNUSED, format_percent(waste.at_current_fraction), f"of {capacity}, at {name_today(today)}")


def _use(result: RunResult) -> KeyFigure:
    size, reserve = result.recommended, result.largest_with_reserve
    if size is None:
        note = "more time may tell" if result.boundary.reason is Reason.TIME_BUDGET else ""
        note = note if reserve is None else f"{reserve.batch_size:,} is the largest with the reserve"
        return KeyFigure(USE, "none recommended", note, is_known=False)
    if size.batch_size == result.current_batch_size:
        return KeyFigure(USE, f"{size.batch_size:,}", "as today")
    unused = result.waste.at_recommended_fraction
    note = f"instead of {name_today(result.current_batch_size)}"
    return KeyFigure(
        USE, f"{size.batch_size:,}", note if unused is None else f"{note}; {format_percent(unused)} unused"
    )


def _saves(result: RunResult, money: Savings) -> KeyFigure:
    size, claim = result.recommended, claim_in(result)
    if size is None:
        return KeyFigure(SAVES, "not known", "no gain is shown yet", is_known=False)
    if size.batch_size == result.current_batch_size:
        return KeyFigure(SAVES, NOTHING, "no other size is shown to be faster")
    if is_today_refused(result):
        return KeyFigure(SAVES, "not known", f"{name_today(result.current_batch_size)} cannot be timed", is_known=False)
    if claim is SpeedClaim.AT_LEAST and result.speedup_low is not None:
        return _least(result.speedup_low, money)
    if claim is SpeedClaim.AHEAD:
        return KeyFigure(SAVES, "time", describe_order(result))
    if result.speedup is None:
        return KeyFigure(SAVES, "not known", "needs a measured speed-up", is_known=False)
    time = f"{format_percent(1 - 1 / result.speedup)} of the time"
    per_run, low = money.per_run_usd, money.per_run_usd_low
    if per_run is None or min(per_run, per_run if low is None else low) < CENT:
        return KeyFigure(SAVES, time, f"{format_factor(result.speedup)} as fast")
    return KeyFigure(SAVES, f"{format_usd(per_run)} a run", f"{time}; {_assumed(money)}")


def _least(low: float, money: Savings) -> KeyFigure:
    faster, saved = f"at least {describe_lower_bound(low)} as fast", money.per_run_usd_low
    if saved is None or saved < CENT:
        return KeyFigure(SAVES, "time", faster)
    return KeyFigure(SAVES, f"at least {format_least_usd(saved)} a run", f"{faster}; {_assumed(money)}")


def _assumed(money: Savings) -> str:
    """Write "2 h at $0.60 an hour assumed": nobody measured what a run costs."""
    return f"{money.hours_per_run:g} h at {format_usd(money.price_per_hour_usd)} an hour assumed"
