"""The large figures of a result, speed-up, cost and saving, or why nothing is gained; and what a reader may assume."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.http import QueryDict

from analysis.http.query_string import StrictQueryForm, WholeNumberField, without_empty
from analysis.presentation.formatting import bytes_text, number, rate, rate_range, times, usd, usd_range
from engine.catalog.stored_workload import stored_workload
from engine.describe.boundary import is_today_refused
from engine.describe.speed import speed_of
from engine.documents.measured import Measured
from engine.results.result import Point, Savings
from engine.results.savings import savings_assuming
from engine.spec import RANGES
from engine.text.today import name_today
from engine.text.units import format_least_usd, format_most_usd, sentence_case


@dataclass(frozen=True, slots=True)
class Figure:
    """One large number; `kind` is measured, derived or empty (unknown), `interval` the 95 % one or empty."""

    title: str
    value: str
    kind: str
    text: str
    assumption: str = ""
    is_gain: bool = False
    interval: str = ""


def figures(result: Measured, savings: Savings | None = None) -> list[Figure]:
    """Return speed-up, cost per run and saving per year, with the run's own assumptions or the reader's.

    Where only bounds are known these are the bounds. None where no factor is known: the sentence says why.
    """
    savings, known = savings or result.savings, speed_of(result)
    if known.least is None:
        is_alone = is_today_refused(result) and result.is_speed_measurable  # there is nothing to gain on
        return [_own_speed(result, result.recommended)] if is_alone and result.recommended else []
    speedup = Figure("Speed-up", known.factor, "measured", _against(result), is_gain=True, interval=known.interval)
    return [speedup, *_money(result, savings)]


def _against(result: Measured) -> str:
    if result.speedup is None or result.current is None or result.recommended is None:
        size = result.recommended.batch_size if result.recommended else 0
        return f"{size:,} against {name_today(result.current_batch_size)}, timed side by side."
    text = f"{rate(result.current.samples_per_second)} → {rate(result.recommended.samples_per_second)} samples/s."
    ratio = result.batch_size_ratio
    return f"{text} The batch is {times(ratio)} as large." if ratio is not None and ratio > 1 else text


def _own_speed(result: Measured, size: Point) -> Figure:
    today = sentence_case(name_today(result.current_batch_size))
    text = f"samples/s at {size.batch_size:,}. {today} does not run here to compare with."
    interval = rate_range(size.samples_per_second_low, size.samples_per_second_high)
    kind = "" if size.samples_per_second is None else "measured"
    return Figure("Speed", rate(size.samples_per_second), kind, text, interval=interval)


def _money(result: Measured, savings: Savings) -> list[Figure]:
    """Return cost and saving; the lower bound of a saving is the upper bound of the cost."""
    today, run, year = savings.cost_per_run_usd, savings.per_run_usd, savings.per_year_usd
    low, high = savings.per_run_usd_low, savings.per_run_usd_high
    year_low, year_high = savings.per_year_usd_low, savings.per_year_usd_high
    if run is not None and year is not None:
        cost, saved, cost_interval = usd(today - run), usd(year), ""
        if low is not None and high is not None:
            cost_interval = usd_range(today - high, today - low)
        saved_interval, speedup = usd_range(year_low, year_high), result.speedup
    elif low is not None and year_low is not None:
        least, cost_interval, speedup = format_least_usd(year_low), "", result.speedup_low
        cost, saved = f"at most {format_most_usd(today - low)}", f"at least {least}"
        saved_interval = "" if year_high is None else f"{least} to {format_most_usd(year_high)}"
    else:
        return []
    # the exact speed-up gives the amount: the shown one is rounded
    formula = f"hours × price × (1 − 1 / {speedup or 0:.6g}) × runs."
    of_run = f"{number(savings.hours_per_run)} h a run today, {usd(savings.price_per_hour_usd)} an hour"
    of_year = f"{savings.runs_per_year:,} runs a year on one device"
    least_saved = year if year_low is None else year_low
    return [
        Figure("Cost per run", cost, "derived", f"was {usd(today)}.", of_run, interval=cost_interval),
        Figure("Saved per year", saved, "derived", formula, of_year, (least_saved or 0) > 0, saved_interval),
    ]


ROOM_FROM = 0.2
"""Share of the memory from which free memory is room for something larger."""


@dataclass(frozen=True, slots=True)
class NothingToGain:
    """The evidence in a sentence, and settings other than the batch size that were not measured."""

    text: str
    others: tuple[str, ...]


def nothing_to_gain(result: Measured) -> NothingToGain | None:
    kept = result.recommended
    if kept is None or kept.batch_size != result.current_batch_size or result.is_check:
        return None
    return NothingToGain(_evidence(result, kept), tuple(_others(result, kept)))


def _evidence(result: Measured, kept: Point) -> str:
    said = f"{sentence_case(speed_of(result).said)}."
    if kept.samples_per_second is None:
        return said
    return f"{said} {sentence_case(name_today(kept.batch_size))} reaches {_speed(kept)}."


def _speed(point: Point) -> str:
    interval = rate_range(point.samples_per_second_low, point.samples_per_second_high)
    return f"{rate(point.samples_per_second)} samples/s{f' ({interval})' if interval else ''}"


def _others(result: Measured, kept: Point) -> list[str]:
    free, workload = result.free_bytes or 0, stored_workload(result.spec)
    has_room, tries = free >= ROOM_FROM * result.limit_bytes, []
    if result.spec.get("gradient_checkpointing") and has_room:
        tries.append("Without gradient checkpointing: it computes activations twice to save memory that is free here.")
    if result.spec.get("precision") == "fp32" and result.device.kind != "cpu":
        tries.append("bf16 instead of fp32, where the device has it: activations take about half the memory.")
    if has_room and workload is not None:
        larger = "longer sequences" if workload.is_text else "larger images"
        tries.append(f"{larger.capitalize()} or a larger model: {bytes_text(free)} are free at {kept.batch_size:,}.")
    return tries


_PRICE, _HOURS, _RUNS = (RANGES[name] for name in ("price_per_hour_usd", "hours_per_run", "runs_per_year"))


class AssumptionsForm(StrictQueryForm):
    """The three assumptions as parameters of an address: `?price=2.5&hours=8&runs=40`."""

    price = forms.FloatField(label="Price per hour, US$", min_value=_PRICE[0], max_value=_PRICE[1])
    hours = forms.FloatField(label="Hours per run today", min_value=_HOURS[0], max_value=_HOURS[1])
    runs = WholeNumberField(label="Runs per year", min_value=int(_RUNS[0]), max_value=int(_RUNS[1]))


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The form and the resulting savings. `is_changed`: the assumptions differ from the run's own."""

    form: AssumptionsForm
    savings: Savings
    is_changed: bool


def assumptions(result: Measured, query: QueryDict) -> Assumptions:
    """Read the run's own assumptions, replaced by those in the address. An invalid one changes nothing."""
    own = result.savings
    stored = {
        "price": f"{own.price_per_hour_usd:.10g}",
        "hours": f"{own.hours_per_run:.10g}",
        "runs": str(own.runs_per_year),
    }
    form = AssumptionsForm(without_empty(query), initial=stored)
    if form.problems or not form.given:
        return Assumptions(form, own, is_changed=False)
    assumed = form.cleaned_data
    savings = savings_assuming(
        result.speedup,
        speedup_low=result.speedup_low,
        speedup_high=result.speedup_high,
        price_per_hour_usd=assumed["price"],
        hours_per_run=assumed["hours"],
        runs_per_year=assumed["runs"],
    )
    return Assumptions(form, savings, is_changed=savings != own)
