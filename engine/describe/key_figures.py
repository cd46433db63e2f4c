"""PURE: the figures of an answer: what is lost today, which size to use, what that saves; and why nothing is gained."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..facts.result import Point, Reason, RunResult, Savings
from ..facts.speed_rounds import SpeedClaim
from ..settings.catalog.stored_workload import stored_workload
from ..text.today import name_today
from ..text.units import (
    format_bytes,
    format_least_usd,
    format_most_usd,
    format_percent,
    format_significant,
    format_usd,
    rate_range,
    round_bytes,
    sentence_case,
    times,
    usd_range,
)
from .boundary import is_today_refused
from .reserve import free_bytes
from .speed import NOT_KNOWN, speed_of, time_lost

LOST, UNUSED, USE, SAVES = "Lost today", "Unused today", "Use", "Saves"
WASTE, GAIN, NOTHING = "waste", "gain", "nothing"
MEASURED, DERIVED = "measured", "derived"
CENT = 0.01


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A word or a number, and what it refers to. `is_known`: it is a finding, not a gap. `tone` is waste or gain.

    A figure of its own section also has its `kind`, measured or derived, its 95 % `interval`, and an `assumption`.
    """

    title: str
    value: str
    note: str
    is_known: bool = True
    tone: str = ""
    kind: str = ""
    interval: str = ""
    assumption: str = ""


def key_figures(result: RunResult, savings: Savings | None = None) -> tuple[KeyFigure, ...]:
    """Return what is lost today, which size to use, and what that saves, by `savings` or the run's own assumptions."""
    if result.largest is None or result.spec.check_batch_size is not None:
        return ()
    shown = (_lost(result), _use(result), _saves(result, savings or result.savings))
    size = result.recommended
    tones = {} if size and size.batch_size == result.current_batch_size else {LOST: WASTE, UNUSED: WASTE}
    if speed_of(result).is_gain:
        tones |= {USE: GAIN, SAVES: GAIN}
    return tuple(replace(each, tone=tones.get(each.title, "")) if each.is_known else each for each in shown)


def _lost(result: RunResult) -> KeyFigure:
    today, waste, least = name_today(result.current_batch_size), result.waste, speed_of(result).least
    capacity = round_bytes(waste.capacity_bytes)
    unused = None if waste.at_current_fraction is None else format_percent(waste.at_current_fraction)
    if least is not None:
        share = 1 - 1 / least
        is_bound = result.speedup is None
        lost = f"at least {math.floor(share * 1000) / 10:.1f} %" if is_bound else format_percent(share)
        memory = f" {unused} of {capacity} is unused." if unused else ""
        return KeyFigure(LOST, f"{lost} of the time", f"{time_lost(result)}{memory}")
    if is_today_refused(result):
        return KeyFigure(UNUSED, "does not fit", f"{today} runs out of memory in {capacity}")
    if unused is None:
        return KeyFigure(UNUSED, "not measured", f"{today} was not run", is_known=False)
    return KeyFigure(UNUSED, unused, f"of {capacity}, at {today}")


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
    least = min((usd for usd in (money.per_run_usd, money.per_run_usd_low) if usd is not None), default=0.0)
    if known.least is None or least < CENT:
        return KeyFigure(SAVES, "time", known.said)
    assumed = f"{money.hours_per_run:g} h at {format_usd(money.price_per_hour_usd)} an hour assumed"
    return KeyFigure(SAVES, f"{describe_saving(money.per_run_usd, money.per_run_usd_low)} a run", assumed)


def describe_saving(value_usd: float | None, low_usd: float | None) -> str:
    """Write "$60.00", or "at least $60.00" where only the lower bound is claimed; empty where neither is known."""
    if value_usd is None:
        return "" if low_usd is None else f"at least {format_least_usd(low_usd)}"
    return format_usd(value_usd)


def figures(result: RunResult, savings: Savings | None = None) -> list[KeyFigure]:
    """Return speed-up, cost per run and saving per year, with the run's own assumptions or the reader's.

    Where only bounds are known these are the bounds. None where no factor is known: the sentence says why.
    """
    known = speed_of(result)
    if known.least is None:
        is_alone = is_today_refused(result) and known.claim is SpeedClaim.FIGURE  # there is nothing to gain on
        return [_own_speed(result, result.recommended)] if is_alone and result.recommended else []
    speedup = KeyFigure("Speed-up", known.factor, _against(result), tone=GAIN, kind=MEASURED, interval=known.interval)
    return [speedup, *_cost_and_saving(result, savings or result.savings)]


def _against(result: RunResult) -> str:
    current, recommended, ratio = result.current, result.recommended, result.batch_size_ratio
    if result.speedup is None or current is None or recommended is None:
        size = recommended.batch_size if recommended else 0
        return f"{size:,} against {name_today(result.current_batch_size)}, timed side by side."
    text = f"{_rate(current)} → {_rate(recommended)} samples/s."
    return f"{text} The batch is {times(ratio)} as large." if ratio is not None and ratio > 1 else text


def _own_speed(result: RunResult, size: Point) -> KeyFigure:
    today, is_known = sentence_case(name_today(result.current_batch_size)), size.samples_per_second is not None
    note = f"samples/s at {size.batch_size:,}. {today} does not run here to compare with."
    return KeyFigure("Speed", _rate(size), note, is_known, kind=MEASURED if is_known else "", interval=_interval(size))


def _rate(point: Point) -> str:
    return "not measured" if point.samples_per_second is None else format_significant(point.samples_per_second)


def _interval(point: Point) -> str:
    return rate_range(point.samples_per_second_low, point.samples_per_second_high)


def _cost_and_saving(result: RunResult, money: Savings) -> list[KeyFigure]:
    """Return both figures, or bounds of them: the lower bound of a saving is the upper bound of the cost."""
    today, low, high = money.cost_per_run_usd, money.per_run_usd_low, money.per_run_usd_high
    year_low, year_high, cost_interval = money.per_year_usd_low, money.per_year_usd_high, ""
    if money.per_run_usd is not None:
        cost, speedup = format_usd(today - money.per_run_usd), result.speedup
        saved_interval = usd_range(year_low, year_high)
        if low is not None and high is not None:
            cost_interval = usd_range(today - high, today - low)
    elif low is not None and year_low is not None:
        cost, speedup = f"at most {format_most_usd(today - low)}", result.speedup_low
        least = format_least_usd(year_low)
        saved_interval = "" if year_high is None else f"{least} to {format_most_usd(year_high)}"
    else:
        return []
    # the exact speed-up gives the amount: the shown one is rounded
    formula = f"hours × price × (1 − 1 / {speedup or 0:.6g}) × runs."
    of_run = f"{money.hours_per_run:,g} h a run today, {format_usd(money.price_per_hour_usd)} an hour"
    of_year = f"{money.runs_per_year:,} runs a year on one device"
    tone = GAIN if ((money.per_year_usd if year_low is None else year_low) or 0) > 0 else ""
    saved = describe_saving(money.per_year_usd, year_low)
    return [
        KeyFigure(
            "Cost per run", cost, f"was {format_usd(today)}.", kind=DERIVED, interval=cost_interval, assumption=of_run
        ),
        KeyFigure("Saved per year", saved, formula, True, tone, DERIVED, saved_interval, of_year),
    ]


ROOM_FROM = 0.2
"""Share of the memory from which free memory is room for something larger."""


@dataclass(frozen=True, slots=True)
class NothingToGain:
    """The evidence in a sentence, and settings other than the batch size that were not measured."""

    text: str
    others: tuple[str, ...]


def nothing_to_gain(result: RunResult) -> NothingToGain | None:
    kept = result.recommended
    if kept is None or kept.batch_size != result.current_batch_size or result.spec.check_batch_size is not None:
        return None
    text = f"{sentence_case(speed_of(result).said)}."
    if kept.samples_per_second is not None:
        interval = f" ({_interval(kept)})" if _interval(kept) else ""
        text += f" {sentence_case(name_today(kept.batch_size))} reaches {_rate(kept)} samples/s{interval}."
    return NothingToGain(text, tuple(_other_settings(result, kept)))


def _other_settings(result: RunResult, kept: Point) -> list[str]:
    spec, free = result.spec.to_dict(), free_bytes(result, kept) or 0
    has_room, workload, tries = free >= ROOM_FROM * result.waste.capacity_bytes, stored_workload(spec), []
    if spec.get("gradient_checkpointing") and has_room:
        tries.append("Without gradient checkpointing: it computes activations twice to save memory that is free here.")
    if spec.get("precision") == "fp32" and result.device.kind != "cpu":
        tries.append("bf16 instead of fp32, where the device has it: activations take about half the memory.")
    if has_room and workload is not None:
        larger = "longer sequences" if workload.is_text else "larger images"
        tries.append(f"{larger.capitalize()} or a larger model: {format_bytes(free)} are free at {kept.batch_size:,}.")
    return tries
