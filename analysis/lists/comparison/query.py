"""The query string of a comparison. An invalid parameter is refused by its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import QueryDict

from analysis.http.query_string import BadQuery, QueryProblem, StrictQueryForm, WholeNumberField, is_row_id

CHARTED_MAX = 8
"""As many runs as there are colours; more are compared as a table."""
COMPARED_MIN, COMPARED_MAX = 2, 50
SCALES = (("log", "log"), ("linear", "linear"))


class RunIdsField(forms.Field):
    """Numbers of runs, separated by commas or repeated; duplicates are dropped."""

    widget = forms.MultipleHiddenInput

    def to_python(self, value: Any) -> tuple[int, ...]:
        parts = [part.strip() for part in ",".join(value).split(",") if part.strip()]
        wrong = next((part for part in parts if not is_row_id(part)), None)
        if wrong is not None:
            raise forms.ValidationError(f"{wrong[:40]!r} is not the number of a run")
        return tuple(dict.fromkeys(map(int, parts)))


class CompareForm(StrictQueryForm):
    """The parameters of the page."""

    repeatable = ("ids",)

    ids = RunIdsField(required=False)
    baseline = WholeNumberField(required=False)
    x = forms.ChoiceField(choices=SCALES, initial="log", required=False)
    y = forms.ChoiceField(choices=SCALES, initial="linear", required=False)


def named_ids(query: QueryDict) -> tuple[int, ...]:
    """Return the runs that an address names, however few. Raises BadQuery for one that is malformed."""
    ids: tuple[int, ...] = CompareForm.read(query).cleaned_data["ids"]
    return ids


@dataclass(frozen=True, slots=True)
class CompareQuery:
    """`?ids=3,8,9&baseline=3&x=log&y=linear`. Without a baseline it is the first run that has a result.

    Raises BadQuery for runs that cannot be compared.
    """

    ids: tuple[int, ...]
    baseline: int | None = None
    x: str = "log"
    y: str = "linear"

    def __post_init__(self) -> None:
        if len(self.ids) < COMPARED_MIN:
            raise BadQuery(QueryProblem("ids", "name at least two different runs"))
        if len(self.ids) > COMPARED_MAX:
            detail = f"names {len(self.ids)} runs; at most {COMPARED_MAX} are compared at once"
            raise BadQuery(QueryProblem("ids", detail))
        if self.baseline not in (None, *self.ids):
            named = ", ".join(map(str, self.ids[:10]))
            raise BadQuery(QueryProblem("baseline", f"{self.baseline} is not one of the runs compared ({named})"))

    @classmethod
    def of(cls, query: QueryDict) -> CompareQuery:
        return cls(**CompareForm.read(query).cleaned_data)

    def address(self, **changed: Any) -> str:
        parts = {"ids": self.ids, "baseline": self.baseline, "x": self.x, "y": self.y} | changed
        parts["ids"] = ",".join(map(str, parts["ids"]))
        return "?" + urlencode({name: value for name, value in parts.items() if value is not None}, safe=",")
