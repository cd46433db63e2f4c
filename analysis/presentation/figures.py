"""The large figures of a result: speed-up, cost and saving, or their bounds."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.presentation.formatting import NOT_MEASURED, number, rate, rate_range, times, usd, usd_range
from analysis.presentation.stored.result import StoredResult
from engine.describe.speed import speed_of
from engine.results.result import Point, Savings
from engine.text.today import name_today
from engine.text.units import format_least_usd, format_most_usd, sentence_case


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

    Where only bounds are known these are the bounds. None where no factor is known: the sentence says why.
    """
    savings, known = savings or result.savings, speed_of(result)
    if known.least is None:
        is_alone = result.current_is_refused and result.is_speed_measurable  # there is nothing to gain on
        return [_own_speed(result, result.recommended)] if is_alone and result.recommended else []
    speedup = Figure("Speed-up", known.factor, "measured", _against(result), is_gain=True, interval=known.interval)
    if result.speedup is None:
        return [speedup, _most_cost(savings), _least_saved(result, savings)]
    return [speedup, _cost_per_run(savings), _saved_per_year(result, savings)]


def _against(result: StoredResult) -> str:
    if result.speedup is None or result.current is None or result.recommended is None:
        size = result.recommended.batch_size if result.recommended else 0
        return f"{size:,} against {name_today(result.current_batch_size)}, timed side by side."
    text = f"{rate(result.current.samples_per_second)} → {rate(result.recommended.samples_per_second)} samples/s."
    ratio = result.batch_size_ratio
    return f"{text} The batch is {times(ratio)} as large." if ratio is not None and ratio > 1 else text


def _own_speed(result: StoredResult, size: Point) -> Figure:
    """Return the speed of the recommended size, where today's does not run."""
    today = sentence_case(name_today(result.current_batch_size))
    text = f"samples/s at {size.batch_size:,}. {today} does not run here to compare with."
    interval = rate_range(size.samples_per_second_low, size.samples_per_second_high)
    kind = "" if size.samples_per_second is None else "measured"
    return Figure("Speed", rate(size.samples_per_second), kind, text, interval=interval)


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


def _unknown_money(title: str) -> Figure:
    return Figure(title, NOT_MEASURED, "", "Needs a measured speed-up.")


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
