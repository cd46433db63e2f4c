"""In which order runs stand, and what comes after a given one in it.

Where a value is missing, the run comes last, in both directions: there are two parts, and an index serves each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import OrderBy, Q, QuerySet
from django.db.models.functions import Coalesce

from analysis.models import Run
from analysis.pages.history.columns import COLUMNS, Column


@dataclass(frozen=True, slots=True)
class Part:
    """Runs in an order that an index has, and the keys of that order."""

    runs: QuerySet[Run]
    keys: tuple[str, ...]
    has_value: bool | None = None
    """Whether its runs have a value in the column; None: those with and without one."""
    is_narrow: bool = False

    @classmethod
    def of(cls, runs: QuerySet[Run], keys: tuple[str, ...], has_value: bool | None = None, *, is_narrow: bool) -> Part:
        """`is_narrow`: the filters leave so few that they are to be sorted, and no index is to be walked for them."""
        first = _in_no_index(keys[0]) if is_narrow else keys[0]
        return cls(runs.order_by(first, *keys[1:]), keys, has_value, is_narrow)

    def holds(self, has_value: bool) -> bool:
        return self.has_value in (None, has_value)

    def reversed(self) -> Part:
        keys = tuple(map(_reversed_key, self.keys))
        return Part.of(self.runs, keys, self.has_value, is_narrow=self.is_narrow)

    def after(self, values: Mapping[str, Any]) -> QuerySet[Run]:
        return self.runs.filter(beyond(self.keys, values))


@dataclass(frozen=True, slots=True)
class Sort:
    """A column, and whether its natural order is reversed."""

    column: Column
    is_reversed: bool

    @property
    def text(self) -> str:
        return f"-{self.column.key}" if self.is_reversed else self.column.key

    @property
    def keys(self) -> tuple[str, ...]:
        natural = self.column.order
        return tuple(map(_reversed_key, natural)) if self.is_reversed else natural

    @property
    def path(self) -> str:
        return self.column.order[0]

    def has_value(self, values: Mapping[str, Any]) -> bool:
        return not self.column.can_be_absent or values[self.path] not in (None, self.column.absent)

    def parts(self, runs: QuerySet[Run], *, none_measured: bool = False, is_narrow: bool = False) -> list[Part]:
        """Order the runs with a value, then those without one, newest first.

        Where none of them can have a measured figure, nobody is sent to look for one through the whole history.
        """
        last = ("-created_at", "-id")
        if none_measured and self.column.is_figure:
            return [Part.of(runs, last, has_value=False, is_narrow=is_narrow)]
        if not self.column.can_be_absent:
            return [Part.of(runs, self.keys, is_narrow=is_narrow)]
        has, has_not = self._presence()
        return [
            Part.of(runs.filter(has), self.keys, has_value=True, is_narrow=is_narrow),
            Part.of(runs.filter(has_not), last, has_value=False, is_narrow=is_narrow),
        ]

    def _presence(self) -> tuple[Q, Q]:
        if self.column.absent is None:
            # the text of the partial indexes, which are used for no other ones
            return Q(**{f"{self.path}__isnull": False}), Q(**{f"{self.path}__isnull": True})
        return Q(**{f"{self.path}__gt": ""}), Q(**{self.path: ""})


def sort_named(text: str) -> Sort:
    """Read "-largest" as the largest first. ValueError says what there is instead."""
    key = text.removeprefix("-")
    if key not in COLUMNS or not COLUMNS[key].order:
        sortable = ", ".join(column.key for column in COLUMNS.values() if column.order)
        raise ValueError(f"Runs are not sorted by “{key}”. They are by: {sortable}; with - before it, in reverse.")
    return Sort(COLUMNS[key], text.startswith("-"))


def beyond(keys: Sequence[str], values: Mapping[str, Any]) -> Q:
    """Select what comes after the row with these values, in the order of these keys.

    As `a <= x AND NOT (a = x AND NOT beyond the rest)`: written with OR, no database would use the index.
    """
    key, *rest = keys
    path, step = key.removeprefix("-"), "lt" if key.startswith("-") else "gt"
    value = values[path]
    if not rest:
        return Q(**{f"{path}__{step}": value})
    return Q(**{f"{path}__{step}e": value}) & ~(Q(**{path: value}) & ~beyond(rest, values))


def _in_no_index(key: str) -> OrderBy:
    """Write the same order in a form that no index has.

    A database that sees an index for it walks that to the far end, past a million runs, for a few that stand there
    together.
    """
    path = key.removeprefix("-")
    return OrderBy(Coalesce(path, path), descending=key.startswith("-"))


def _reversed_key(key: str) -> str:
    return key.removeprefix("-") if key.startswith("-") else f"-{key}"
