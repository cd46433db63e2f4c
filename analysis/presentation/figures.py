"""The large figures of a result: speed-up, cost and saving; their bounds, or what is known where none is claimed."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.presentation.formatting import (
    NOT_MEASURED,
    bytes_text,
    factor,
    number,
    percent,
    rate,
    rate_range,
    times,
    usd,
    usd_range,
)
from analysis.presentation.stored.result import StoredResult
from engine.describe.result import compared, describe_other, is_disturbed
from engine.results.result import Point, Savings
from engine.results.speed_rounds import SpeedClaim
from engine.speed.claim import describe_bounds, describe_lower_bound
from engine.text.today import name_today, reword
from engine.text.units import format_factor_range, format_least_usd, format_most_usd, sentence_case


@dataclass(frozen=True, slots=True)
class Figure:
    """One large number: its kind (measured, derived, empty where unknown), the text under it, its assumptions.

    `interval` is the 95 % confidence interval; empty where it is unknown.
    """

    title: str
    value: str
    kind: str
    text: str
    assumption: str = ""
    is_gain: bool = False
    interval: str = ""


def figures(result: StoredResult, savings: Savings | None = None) -> list[Figure]:
    """Return speed-up, cost per run and saving per year, with the run's own assumptions or the reader's.

    Where only bounds are known these are the bounds; where nothing is claimed, what is known in their place.
    """
    savings = savings or result.savings
    if result.claim is SpeedClaim.AT_LEAST:
        return [_least_speedup(result), _most_cost(savings), _least_saved(result, savings)]
    if not result.is_speed_measurable:
        return [_speed_range(result), *_with_reserve(result)]
    if result.current_is_refused and result.recommended is not None:  # there is nothing to gain on
        return [_own_speed(result, result.recommended), *_with_reserve(result)]
    return [_speedup(result), _cost_per_run(savings), _saved_per_year(result, savings)]


def _own_speed(result: StoredResult, size: Point) -> Figure:
    """Return the speed of the recommended size, where today's does not run."""
    today = sentence_case(name_today(result.current_batch_size))
    text = f"samples/s at {size.batch_size:,}. {today} does not run here to compare with."
    interval = rate_range(size.samples_per_second_low, size.samples_per_second_high)
    kind = "" if size.samples_per_second is None else "measured"
    return Figure("Speed", rate(size.samples_per_second), kind, text, interval=interval)


def _least_speedup(result: StoredResult) -> Figure:
    low, high = result.speedup_low or 0.0, result.speedup_high or 0.0
    size = result.recommended.batch_size if result.recommended else 0
    text = f"{size:,} against {name_today(result.current_batch_size)}, timed side by side. No single figure is claimed."
    bound = f"at least {describe_lower_bound(low)}"
    return Figure("Speed-up", bound, "measured", text, is_gain=True, interval=describe_bounds(low, high))


def _most_cost(savings: Savings) -> Figure:
    """Return what a run costs at most: the lower bound of the saving is the upper bound of the cost."""
    today, saved = savings.cost_per_run_usd, savings.per_run_usd_low
    if saved is None:
        return _unknown_money("Cost per run")
    cost = f"at most {format_most_usd(today - saved)}"
    return Figure("Cost per run", cost, "derived", f"was {usd(today)}.", _assumed_of_a_run(savings))


def _least_saved(result: StoredResult, savings: Savings) -> Figure:
    low, high = savings.per_year_usd_low, savings.per_year_usd_high
    if low is None:
        return _unknown_money("Saved per year")
    least, assumption = format_least_usd(low), _assumed_of_a_year(savings)
    formula = _formula(result.speedup_low)
    interval = "" if high is None else f"{least} to {format_most_usd(high)}"
    return Figure("Saved per year", f"at least {least}", "derived", formula, assumption, low > 0, interval)


def _formula(speedup: float | None) -> str:
    """Return the formula of the saving, with a speed-up that gives the amount: the shown one is rounded."""
    exact = "speed-up" if speedup is None else f"{speedup:.6g}"
    return f"hours × price × (1 − 1 / {exact}) × runs."


def _speed_range(result: StoredResult) -> Figure:
    """Return the interval where it is all that is known, and else why there is none."""
    if (found := compared(result)) is None:
        return Figure("Speed-up", NOT_MEASURED, "", _why_no_speedup(result))
    text = f"{found.batch_size:,} against {describe_other(found, result)}. No gain is claimed from it."
    return Figure("Speed-up", found.interval, "", text)


def _with_reserve(result: StoredResult) -> list[Figure]:
    point = result.largest_with_reserve
    if point is None or point.memory_bytes is None or point == result.recommended:
        return []
    free_bytes = result.limit_bytes - point.memory_bytes
    text = (
        f"It leaves {bytes_text(free_bytes)} free, {percent(free_bytes / result.limit_bytes)}. Not shown to be faster."
    )
    return [Figure("Largest that keeps the reserve", f"{point.batch_size:,}", "measured", text)]


def _unknown_money(title: str) -> Figure:
    return Figure(title, NOT_MEASURED, "", "Needs a measured speed-up.")


def _speedup(result: StoredResult) -> Figure:
    title = "Speed-up"
    if result.speedup is None or result.current is None or result.recommended is None:
        return Figure(title, factor(None), "", _why_no_speedup(result))
    text = f"{rate(result.current.samples_per_second)} → {rate(result.recommended.samples_per_second)} samples/s."
    ratio = result.batch_size_ratio
    if ratio is not None and ratio > 1:
        text += f" The batch is {times(ratio)} as large."
    interval = format_factor_range(result.speedup_low, result.speedup_high)
    is_gain = result.is_faster if interval else result.speedup > 1
    return Figure(title, factor(result.speedup), "measured", text, is_gain=is_gain, interval=interval)


def _why_no_speedup(result: StoredResult) -> str:
    if is_disturbed(result):
        return "Other programs disturbed the timing, and would make any factor wrong."
    if result.speed is not None and not result.is_speed_measurable:
        return f"{sentence_case(reword(result.speed.reason or 'the speeds were not compared')).removesuffix('.')}."
    if result.recommended is None:
        return "No size was measured for a comparison."
    if result.current is None and result.current_batch_size > result.spec["max_batch_size"]:
        today = sentence_case(name_today(result.current_batch_size))
        return f"{today} is above the maximum of this run, so it was not measured."
    return "The speed of one of the two sizes was not measured."


def _cost_per_run(savings: Savings) -> Figure:
    today, assumption = savings.hours_per_run * savings.price_per_hour_usd, _assumed_of_a_run(savings)
    if savings.per_run_usd is None:
        return Figure(
            "Cost per run", usd(today), "derived", "today; the cost with the recommended size is unknown.", assumption
        )
    interval = ""
    if savings.per_run_usd_low is not None and savings.per_run_usd_high is not None:
        interval = usd_range(today - savings.per_run_usd_high, today - savings.per_run_usd_low)
    cost, text = usd(today - savings.per_run_usd), f"was {usd(today)}."
    return Figure("Cost per run", cost, "derived", text, assumption, interval=interval)


def _saved_per_year(result: StoredResult, savings: Savings) -> Figure:
    per_year = savings.per_year_usd
    text = "Needs a measured speed-up." if per_year is None else _formula(result.speedup)
    kind = "" if per_year is None else "derived"
    low = per_year if savings.per_year_usd_low is None else savings.per_year_usd_low
    interval = usd_range(savings.per_year_usd_low, savings.per_year_usd_high)
    return Figure("Saved per year", usd(per_year), kind, text, _assumed_of_a_year(savings), (low or 0) > 0, interval)


def _assumed_of_a_run(savings: Savings) -> str:
    return f"{number(savings.hours_per_run)} h a run today, {usd(savings.price_per_hour_usd)} an hour"


def _assumed_of_a_year(savings: Savings) -> str:
    return f"{savings.runs_per_year:,} runs a year on one device"
