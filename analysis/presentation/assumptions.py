"""Assumptions that a reader of a result may change: price, hours, runs. The savings follow; nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.http import QueryDict

from analysis.http.query_string import StrictQueryForm, WholeNumberField, without_empty
from engine.documents.measured import Measured
from engine.results.result import Savings
from engine.results.savings import savings_assuming
from engine.spec import RANGES

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
