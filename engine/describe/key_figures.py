"""PURE: the three figures under the answer: what is lost today, which size to use, what that saves."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..results.result import Reason, RunResult, Savings
from ..text.today import name_today
from ..text.units import format_bytes, format_least_usd, format_percent, format_usd
from .boundary import is_today_refused
from .speed import NOT_KNOWN, speed_of, time_lost

LOST, UNUSED, USE, SAVES = "Lost today", "Unused today", "Use", "Saves"
WASTE, GAIN, NOTHING = "waste", "gain", "nothing"
CENT = 0.01


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A word or a number, and what it refers to. `is_known`: it is a finding, not a gap. `tone` is waste or gain."""

    title: str
    value: str
    note: str
    is_known: bool = True
    tone: str = ""


def key_figures(result: RunResult, savings: Savings | None = None) -> tuple[KeyFigure, ...]:
    """Return what is lost today, which size to use, and what that saves, by `savings` or the run's own assumptions."""
    if result.largest is None or result.spec.check_batch_size is not None:
        return ()
    figures = (_lost(result), _use(result), _saves(result, savings or result.savings))
    size = result.recommended
    tones = {} if size and size.batch_size == result.current_batch_size else {LOST: WASTE, UNUSED: WASTE}
    if speed_of(result).is_gain:
        tones |= {USE: GAIN, SAVES: GAIN}
    return tuple(replace(each, tone=tones.get(each.title, "")) if each.is_known else each for each in figures)


def _lost(result: RunResult) -> KeyFigure:
    today, waste, least = result.current_batch_size, result.waste, speed_of(result).least
    capacity = format_bytes(waste.capacity_bytes).replace(".0 ", " ")
    unused = None if waste.at_current_fraction is None else format_percent(waste.at_current_fraction)
    if least is not None:
        share = 1 - 1 / least
        is_bound = result.speedup is None
        lost = f"at least {math.floor(share * 1000) / 10:.1f} %" if is_bound else format_percent(share)
        memory = f" {unused} of {capacity} is unused." if unused else ""
        return KeyFigure(LOST, f"{lost} of the time", f"{time_lost(result)}{memory}")
    if is_today_refused(result):
        return KeyFigure(UNUSED, "does not fit", f"{name_today(today)} runs out of memory in {capacity}")
    if unused is None:
        return KeyFigure(UNUSED, "not measured", f"{name_today(today)} was not run", is_known=False)
    return KeyFigure(UNUSED, unused, f"of {capacity}, at {name_today(today)}")


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
    known, size = speed_of(result), result.recommended
    if size is not None and size.batch_size == result.current_batch_size:
        return KeyFigure(SAVES, NOTHING, "no other size is shown to be faster")
    if not known.is_gain:
        return KeyFigure(SAVES, NOT_KNOWN, known.said if size else "no gain is shown yet", is_known=False)
    if known.least is None:
        return KeyFigure(SAVES, "time", known.said)
    is_bound = result.speedup is None
    saved = money.per_run_usd_low if is_bound else money.per_run_usd
    if saved is None or min(saved, saved if money.per_run_usd_low is None else money.per_run_usd_low) < CENT:
        return KeyFigure(SAVES, "time", known.said)
    return KeyFigure(
        SAVES,
        f"at least {format_least_usd(saved)} a run" if is_bound else f"{format_usd(saved)} a run",
        _assumed(money),
    )


def _assumed(money: Savings) -> str:
    """Write "2 h at $0.60 an hour assumed": nobody measured what a run costs."""
    return f"{money.hours_per_run:g} h at {format_usd(money.price_per_hour_usd)} an hour assumed"
