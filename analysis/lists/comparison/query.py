"""Which runs are compared: the query string, of which an invalid parameter is refused by its name; and their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import Count, F
from django.http import QueryDict

from analysis.http.query_string import BadQuery, QueryProblem, StrictQueryForm, WholeNumberField, is_row_id
from analysis.models import Measurement, Run
from analysis.presentation.kinds import presentation_of
from analysis.presentation.kinds.presentation import BATCH_SIZES

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
    repeatable = ("ids",)

    ids = RunIdsField(required=False)
    baseline = WholeNumberField(required=False)
    x = forms.ChoiceField(choices=SCALES, initial="log", required=False)
    y = forms.ChoiceField(choices=SCALES, initial="linear", required=False)


def named_ids(query: QueryDict) -> tuple[int, ...]:
    """Return the runs that an address names, however few. Raises BadQuery for a malformed number."""
    ids: tuple[int, ...] = CompareForm.read(query).cleaned_data["ids"]
    return ids


@dataclass(frozen=True, slots=True)
class CompareQuery:
    """`?ids=3,8,9&baseline=3&x=log&y=linear`; by default the first with a result is baseline. Raises BadQuery."""

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


def stored_runs(ids: tuple[int, ...]) -> list[Run]:
    """Return the runs in the requested order. Raises BadQuery for unknown runs, and runs with nothing in common."""
    runs = Run.objects.with_places().in_bulk(ids)
    missing = [str(run_id) for run_id in ids if run_id not in runs]
    if missing:
        raise BadQuery(QueryProblem("ids", f"there is no run {', '.join(missing[:10])}"))
    reasons = {run_id: presentation_of(runs[run_id]).not_compared for run_id in ids}
    if refused := [run_id for run_id, reason in reasons.items() if reason]:
        which = f"run {', '.join(map(str, refused[:10]))}"
        raise BadQuery(QueryProblem("ids", f"{which} is {reasons[refused[0]]}"))
    by = {presentation_of(runs[run_id]).compared_by: run_id for run_id in reversed(ids)}
    if len(by) > 1:
        which = ", ".join(f"run {run_id} has {what}" for what, run_id in sorted(by.items(), key=lambda each: each[1]))
        raise BadQuery(QueryProblem("ids", f"{which}: they cannot be compared with each other"))
    return [runs[run_id] for run_id in ids]


def compared_by(runs: Sequence[Run]) -> str:
    return presentation_of(runs[0]).compared_by if runs else BATCH_SIZES


def batch_sizes_only(runs: list[Run]) -> list[Run]:
    """Return these runs if they are compared by batch sizes. Raises BadQuery for races."""
    if (by := compared_by(runs)) != BATCH_SIZES:
        raise BadQuery(QueryProblem("ids", f"run {runs[0].pk} has {by} to compare, and no batch size"))
    return runs


def carried_probe_counts(ids: tuple[int, ...]) -> dict[int, int]:
    carried = Measurement.objects.filter(run__in=ids, is_carried=True, attempt=F("run__attempt"))
    return dict(carried.order_by().values_list("run_id").annotate(Count("pk")))
