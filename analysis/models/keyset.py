"""Lists in pages that begin after a row, not at a number: they stay put while other rows arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet

from analysis.http.query_string import BadQuery, QueryProblem

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class ListPart(Generic[Row]):
    """Rows of a list in an order that an index has. A list is one part, or one after the other."""

    queryset: QuerySet[Row]
    keys: tuple[str, ...]
    """Columns to sort by, with - in reverse; the last is unique."""
    figure: str | None = None
    has_figure: bool = False
    """Whether all of its rows have a value in the column `figure`, or none has."""

    @property
    def rows(self) -> QuerySet[Row]:
        return self.queryset.order_by(*self.keys)

    @property
    def reversed(self) -> ListPart[Row]:
        return replace(self, keys=tuple(map(reversed_key, self.keys)))

    def holds(self, values: Mapping[str, Any]) -> bool:
        return self.figure is None or self.has_figure == (values[self.figure] not in (None, ""))


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Rows in order. `following` is the row to go on after, `preceding` the one to go back before; None: no more."""

    rows: list[Row]
    following: int | None = None
    preceding: int | None = None


def page_of(
    parts: Sequence[ListPart[Row]],
    rows: QuerySet[Row],
    *,
    size: int,
    after: int | None = None,
    before: int | None = None,
) -> Page[Row]:
    """Read the first page of a list, or the one after or before a row. Raises BadQuery for a row that is gone.

    The numbers are sorted alone, which is quick; then the page's rows are read, as `rows` reads them.
    """
    if before is not None:
        found = _numbers([part.reversed for part in reversed(parts)], "before", before, size + 1)
        if len(found) <= size:
            return page_of(parts, rows, size=size)
        shown = found[:size][::-1]
    else:
        found = _numbers(parts, "after", after, size + 1)
        shown = found[:size]
    read = rows.in_bulk(shown)
    return Page(
        [read[number] for number in shown if number in read],
        following=shown[-1] if len(found) > size else None,
        preceding=shown[0] if shown and (after is not None or before is not None) else None,
    )


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


def reversed_key(key: str) -> str:
    return key.removeprefix("-") if key.startswith("-") else f"-{key}"


def _numbers(parts: Sequence[ListPart[Row]], name: str, cursor: int | None, wanted: int) -> list[int]:
    querysets = [part.rows for part in parts]
    if cursor is not None:
        values = _values_of(parts, name, cursor)
        at = next((place for place, part in enumerate(parts) if part.holds(values)), len(parts) - 1)
        querysets = [querysets[at].filter(beyond(parts[at].keys, values)), *querysets[at + 1 :]]
    found: list[int] = []
    for queryset in querysets:
        if len(found) < wanted:
            found += queryset.values_list("pk", flat=True)[: wanted - len(found)]
    return found


def _values_of(parts: Sequence[ListPart[Row]], name: str, cursor: int) -> dict[str, Any]:
    """Read the cursor row's sort values; it counts even if the filter no longer matches it."""
    paths = {key.removeprefix("-") for part in parts for key in (*part.keys, part.figure or "pk")}
    model = parts[0].queryset.model
    values: dict[str, Any] | None = model._base_manager.filter(pk=cursor).values(*paths).first()
    if values is None:
        gone = f"{model._meta.verbose_name} {cursor} does not exist any more; begin at the first page"
        raise BadQuery(QueryProblem(name, gone, "gone"))
    return values
