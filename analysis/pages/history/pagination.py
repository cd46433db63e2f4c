"""One page of runs. It begins after a run, not at a number, so it stays put while other runs arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analysis.models import Run
from analysis.pages.history.keyset import Part, Sort

PAGE_SIZE = 50


class CursorGoneError(Exception):
    """The run that the page was to begin after is not there any more."""


@dataclass(frozen=True, slots=True)
class Page:
    """Runs in order. `following` is the run to go on after, `preceding` the one to go back before; None: no more."""

    runs: list[Run]
    following: int | None = None
    preceding: int | None = None


def page_of(
    parts: Sequence[Part], sort: Sort, *, after: int | None = None, before: int | None = None, size: int = PAGE_SIZE
) -> Page:
    """Read the first page, or the one after or before a run, whatever state that run is in by now."""
    if before is not None:
        found = _numbers([part.reversed() for part in reversed(parts)], sort, before, size + 1)
        if len(found) <= size:
            return page_of(parts, sort, size=size)
        shown = found[:size][::-1]
        return Page(_rows(shown), following=shown[-1], preceding=shown[0])
    found = _numbers(parts, sort, after, size + 1)
    shown = found[:size]
    return Page(
        _rows(shown),
        following=shown[-1] if len(found) > size else None,
        preceding=shown[0] if shown and after is not None else None,
    )


def _numbers(parts: Sequence[Part], sort: Sort, cursor: int | None, wanted: int) -> list[int]:
    """So many runs from the cursor on, out of one part after the other: their numbers, which are quick to sort."""
    querysets = [part.runs for part in parts]
    if cursor is not None:
        values = _values_of(cursor, sort)
        has_value = sort.has_value(values)
        at = next((place for place, part in enumerate(parts) if part.holds(has_value)), len(parts) - 1)
        querysets = [parts[at].after(values), *querysets[at + 1 :]]
    found: list[int] = []
    for queryset in querysets:
        if len(found) < wanted:
            found += queryset.values_list("pk", flat=True)[: wanted - len(found)]
    return found


def _rows(numbers: Sequence[int]) -> list[Run]:
    """Read what a list shows of these runs, and nothing more."""
    runs = Run.all_runs.for_history().order_by().prefetch_related("tags").defer("result", "error_message")
    found = {run.pk: run for run in runs.filter(pk__in=numbers)}
    return [found[number] for number in numbers if number in found]


def _values_of(cursor: int, sort: Sort) -> dict[str, Any]:
    """Where that run stands now: also one that was deleted meanwhile still says where its page begins."""
    paths = {"created_at", "id", *(key.removeprefix("-") for key in sort.keys)}
    values: dict[str, Any] | None = Run.all_runs.filter(pk=cursor).values(*paths).first()
    if values is None:
        raise CursorGoneError(cursor)
    return values
