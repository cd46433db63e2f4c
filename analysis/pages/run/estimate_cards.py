"""The table of all cards of an estimate: which are shown, and in which order. The address has both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict

from analysis.http.query_string import FlagField, StrictQueryForm, without_empty
from analysis.presentation.estimate_summary import GpuRow

_SORTS: dict[str, tuple[str, bool, Callable[[GpuRow], Any]]] = {
    "largest": ("largest batch size", True, lambda row: row.largest or None),
    "safe": ("safe batch size", True, lambda row: row.safe or None),
    "used": ("memory at your batch size", False, lambda row: row.memory_at_current),
    "price": ("price", False, lambda row: row.price.per_hour_usd if row.price else None),
    "memory": ("memory of the card", True, lambda row: row.total_bytes),
    "name": ("name", False, lambda row: row.name.lower()),
}
"""By key: its name in the form, whether the greatest comes first, and the value; cards without one come last."""
_DEFAULT = "largest"


class CardsForm(StrictQueryForm):
    """The parameters of the table."""

    card = forms.CharField(label="Card", max_length=60, required=False, help_text="Part of its name.")
    sort = forms.ChoiceField(
        label="Sorted by", choices=[(key, text) for key, (text, *_) in _SORTS.items()], initial=_DEFAULT, required=False
    )
    fits = FlagField(label="Only cards that would safely train with your batch size", required=False)


@dataclass(frozen=True, slots=True)
class Cards:
    """The rows to show, of `count` in all, with the form that chose them."""

    form: CardsForm
    rows: Sequence[GpuRow]
    count: int

    @property
    def sort(self) -> str:
        return _DEFAULT if self.form.problems else str(self.form.cleaned_data["sort"] or _DEFAULT)

    def address(self, sort: str) -> str:
        """Return the query string of the same cards in another order."""
        query = self.form.given.copy()
        query["sort"] = sort
        return query.urlencode()

    @property
    def sort_addresses(self) -> dict[str, str]:
        return {key: self.address(key) for key in _SORTS}


def cards_shown(rows: Sequence[GpuRow], query: QueryDict) -> Cards:
    """Filter and sort the cards by the address. One that is wrong shows all, with what is wrong."""
    form = CardsForm(without_empty(query))
    if form.problems:
        return Cards(form, rows, len(rows))
    wanted = form.cleaned_data
    words = wanted["card"].lower().split()
    kept = [
        row
        for row in rows
        if all(word in row.name.lower() for word in words) and (row.takes_current or not wanted["fits"])
    ]
    return Cards(form, _sorted(kept, wanted["sort"] or _DEFAULT), len(rows))


def _sorted(rows: Sequence[GpuRow], key: str) -> list[GpuRow]:
    """Sort stably: equal cards stay in the order they come in, and those without the value come last."""
    _, is_descending, value = _SORTS[key]
    known = sorted((row for row in rows if value(row) is not None), key=value, reverse=is_descending)
    return [*known, *(row for row in rows if value(row) is None)]
