"""The table of all GPUs of an estimate: which are shown, and in which order. The address has both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict

from analysis.http.query_string import FlagField, StrictQueryForm, without_empty
from analysis.presentation import estimate_summary as summary
from analysis.presentation.estimate_headline import headline, headline_of_all
from analysis.presentation.estimate_summary import GpuRow
from analysis.runs.gpu_catalog import Price
from engine.documents.estimated import EstimatedCard


def _price(row: GpuRow) -> float:
    return row.price.per_hour_usd if row.price else math.inf


_SORTS: dict[str, tuple[str, bool, Callable[[GpuRow], Any]]] = {
    "fit": ("fits, cheapest first", False, lambda row: (not row.takes_current, _price(row))),
    "largest": ("largest batch size", True, lambda row: row.estimate.largest_batch_size or None),
    "safe": ("largest batch size with the margin", True, lambda row: row.estimate.safe_batch_size or None),
    "used": ("memory at your batch size", False, lambda row: row.memory_at_current),
    "price": ("price", False, lambda row: row.price.per_hour_usd if row.price else None),
    "memory": ("memory of the GPU", True, lambda row: row.estimate.gpu.total_bytes),
    "name": ("name", False, lambda row: row.name.lower()),
}
"""By key: its name in the form, whether the greatest comes first, and the value; GPUs without one come last."""
_DEFAULT = "fit"


class CardsForm(StrictQueryForm):
    """The parameters of the table."""

    card = forms.CharField(label="GPU", max_length=60, required=False, help_text="Part of its name.")
    sort = forms.ChoiceField(
        label="Sorted by", choices=[(key, text) for key, (text, *_) in _SORTS.items()], initial=_DEFAULT, required=False
    )
    fits = FlagField(label="Only GPUs that fit your batch size", required=False)


@dataclass(frozen=True, slots=True)
class Cards:
    """The rows to show, of `count` in all, and the form that chose them; `asked` is the rest of the address."""

    form: CardsForm
    rows: Sequence[GpuRow]
    count: int
    asked: QueryDict

    @property
    def question(self) -> list[tuple[str, str]]:
        return [(name, value) for name, values in self.asked.lists() for value in values]

    @property
    def all_address(self) -> str:
        return self.asked.urlencode()

    @property
    def unpriced(self) -> int:
        return sum(row.price is None for row in self.rows)

    @property
    def sort(self) -> str:
        return _DEFAULT if self.form.problems else str(self.form.cleaned_data["sort"] or _DEFAULT)

    def address(self, sort: str) -> str:
        query = self.asked.copy()
        for name, values in self.form.given.lists():
            query.setlist(name, values)
        query["sort"] = sort
        return query.urlencode()

    @property
    def sort_addresses(self) -> dict[str, str]:
        return {key: self.address(key) for key in _SORTS}


def card_context(estimate: EstimatedCard, spec: Mapping[str, Any], today: int) -> dict[str, Any]:
    return {
        "title": headline(estimate, spec),
        "estimate": estimate,
        "figures": summary.figures(estimate, today),
        "bars": summary.estimate_bars(estimate, today),
    }


def cards_context(
    estimates: Sequence[EstimatedCard],
    spec: Mapping[str, Any],
    left_out: Sequence[object],
    prices: Mapping[str, Price],
    query: QueryDict,
    asked: QueryDict | None = None,
) -> dict[str, Any]:
    """Return the table of all GPUs; `left_out` are those that cannot run the settings."""
    rows = summary.gpu_rows(estimates, int(spec["current_batch_size"]), prices)
    return {
        "title": headline_of_all(estimates, spec, len(left_out), prices),
        "cards": cards_shown(rows, query, asked),
        "calibrated_count": sum(each.gpu.calibrated for each in estimates),
    }


def cards_shown(rows: Sequence[GpuRow], query: QueryDict, asked: QueryDict | None = None) -> Cards:
    """Filter and sort the GPUs by the address. One that is wrong shows all, with what is wrong."""
    form, asked = CardsForm(without_empty(query)), asked or QueryDict()
    if form.problems:
        return Cards(form, rows, len(rows), asked)
    wanted = form.cleaned_data
    words = wanted["card"].lower().split()
    kept = [
        row
        for row in rows
        if all(word in row.name.lower() for word in words) and (row.takes_current or not wanted["fits"])
    ]
    _, is_descending, value = _SORTS[wanted["sort"] or _DEFAULT]
    known = sorted((row for row in kept if value(row) is not None), key=value, reverse=is_descending)
    return Cards(form, [*known, *(row for row in kept if value(row) is None)], len(rows), asked)
