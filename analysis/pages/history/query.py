"""A query string -> which runs, in which order, with which columns, from where on; and what is wrong with it.

A query string with errors gives no runs, only the errors: a mistyped filter must not look like one that finds all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.forms import ModelChoiceField
from django.http import QueryDict

from analysis.http.query_string import is_row_id
from analysis.models import Run
from analysis.pages.history.columns import COLUMNS, DEFAULT, DEFAULT_SORT, Column, columns_named, moved
from analysis.pages.history.filters import RunFilter
from analysis.pages.history.keyset import Part, Sort, sort_named

VIEW = ("sort", "columns", "after", "before")
"""Parameters beside the filters."""

MANY = ("state",)
"""Filters that may be given several times."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One filter that is set, as text, and the address without it."""

    label: str
    without: str


@dataclass(frozen=True)
class HistoryQuery:
    """One view of the history. `problems` is empty, or nothing is to be shown."""

    data: QueryDict
    filters: RunFilter
    sort: Sort
    columns: tuple[Column, ...]
    after: int | None
    before: int | None
    problems: tuple[str, ...]

    @property
    def parts(self) -> list[Part]:
        """The runs, in order."""
        runs = self.filters.qs
        return self.sort.parts(runs, none_measured=self.filters.excludes_measured, is_narrow=self.filters.is_narrow)

    @cached_property
    def chosen(self) -> list[Chosen]:
        return [
            Chosen(_label(self.filters, name, self.data.getlist(name)), self.query(**{name: None}))
            for name in self.filters_set
        ]

    @property
    def filters_set(self) -> list[str]:
        return [name for name in self.filters.filters if any(self.data.getlist(name))]

    @property
    def folded_are_set(self) -> bool:
        return any(name not in RunFilter.MAIN for name in self.filters_set)

    @property
    def column_keys(self) -> tuple[str, ...]:
        return tuple(column.key for column in self.columns)

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """What the filter form passes on as it is: the columns stay when filters or order change."""
        return [("columns", value) for value in self.data.getlist("columns")[-1:] if value]

    @property
    def filter_query(self) -> str:
        """Filters and order, for the exports."""
        return self.query(columns=None)

    def query(self, **changes: Any) -> str:
        """Write the query string of this view with some parameters changed; None drops one.

        It names no place in the list, unless that is what changes.
        """
        data = self.data.copy()
        for name in ("after", "before", *changes):
            data.pop(name, None)
        for name, value in changes.items():
            if value is not None:
                data[name] = str(value)
        return data.urlencode(safe=",:/")

    def query_sorted_by(self, column: Column) -> str:
        """Return what a click on the column's title asks for: its order, then the reverse."""
        if self.sort.column is column:
            return self.query(sort=column.key if self.sort.is_reversed else f"-{column.key}")
        return self.query(sort=column.first_sort)

    def column_choices(self) -> Iterator[dict[str, Any]]:
        """Each column with the addresses that show it, hide it, or move it a place."""
        shown = self.column_keys
        for column in self.columns[1:]:
            yield {
                "column": column,
                "hide": self._with_columns(tuple(key for key in shown if key != column.key)),
                "earlier": self._with_columns(moved(shown, column.key, -1)),
                "later": self._with_columns(moved(shown, column.key, +1)),
            }
        for column in COLUMNS.values():
            if column.key not in shown:
                yield {"column": column, "show": self._with_columns((*shown, column.key))}

    def _with_columns(self, keys: tuple[str, ...]) -> str:
        return self.query(columns=None if keys == DEFAULT else ",".join(keys))


def parse_query(data: QueryDict) -> HistoryQuery:
    """Read a query string. It is never refused as a whole: the page shows it again with its problems."""
    problems = [*_unknown(data), *_repeated(data)]
    sort, columns = sort_named(DEFAULT_SORT), columns_named(DEFAULT)
    try:
        sort = sort_named(data.get("sort") or DEFAULT_SORT)
    except ValueError as error:
        problems.append(f"sort: {error}")
    try:
        columns = columns_named((data.get("columns") or ",".join(DEFAULT)).split(","))
    except ValueError as error:
        problems.append(f"columns: {error}")
    places = {name: _place(data, name, problems) for name in ("after", "before")}
    filters = RunFilter(data, Run.objects.all(), order=sort.column.key)
    if not filters.form.is_valid():
        problems += [f"{name}: {error}" for name, errors in filters.form.errors.items() for error in errors]
    return HistoryQuery(data, filters, sort, columns, **places, problems=tuple(problems))


def without_empty(data: QueryDict) -> QueryDict:
    """Drop what a form leaves empty: it says nothing, and makes the address long."""
    hidden = QueryDict(mutable=True)
    for name, values in data.lists():
        if given := [value for value in values if value != ""]:
            hidden.setlist(name, given)
    return hidden


def _unknown(data: QueryDict) -> Iterator[str]:
    known = (*RunFilter.base_filters, *VIEW)
    for name in data:
        if name not in known:
            yield f"{name}: there is no such parameter. There are: {', '.join(known)}."


def _repeated(data: QueryDict) -> Iterator[str]:
    for name, values in data.lists():
        if len(values) > 1 and name not in MANY:
            yield f"{name}: given {len(values)} times; it takes one value."


def _place(data: Mapping[str, str], name: str, problems: list[str]) -> int | None:
    text = data.get(name)
    if not text:
        return None
    number = row_number(text)
    if number is None:
        problems.append(f"{name}: must be the number of a run.")
    return number


def row_number(text: str) -> int | None:
    """As an address or a form names a row; None for what is no number, or one that no row can have."""
    return int(text) if is_row_id(text) else None


def _label(filters: RunFilter, name: str, given: list[str]) -> str:
    """Write "State: failed or cancelled"."""
    field = filters.form.fields[name]
    if isinstance(field, ModelChoiceField):  # its choices are all rows there are
        return f"{field.label}: {filters.form.cleaned_data.get(name) or given[0]}"
    choices = {str(value): str(label) for value, label in getattr(field.widget, "choices", ())}
    return f"{field.label}: {' or '.join(choices.get(value, value) for value in given if value)}"
