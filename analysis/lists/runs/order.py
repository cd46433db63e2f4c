"""In which order runs stand.

Where a value is missing, the run comes last, in both directions: there are two parts, and an index serves each.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from analysis.lists.runs.columns import COLUMNS, Column
from analysis.models import Run
from analysis.models.keyset import ListPart, reversed_key


@dataclass(frozen=True, slots=True)
class Sort:
    """A column, and whether its natural order is reversed."""

    column: Column
    is_reversed: bool

    @property
    def keys(self) -> tuple[str, ...]:
        natural = self.column.order
        return tuple(map(reversed_key, natural)) if self.is_reversed else natural

    @property
    def path(self) -> str:
        return self.column.order[0]

    def parts(self, runs: QuerySet[Run]) -> list[ListPart[Run]]:
        """Order the runs with a value, then those without one, newest first."""
        if not self.column.can_be_absent:
            return [ListPart(runs, self.keys)]
        # the text of the partial indexes, which are used for no other ones
        has, has_not = Q(**{f"{self.path}__isnull": False}), Q(**{f"{self.path}__isnull": True})
        if self.column.absent is not None:
            has, has_not = Q(**{f"{self.path}__gt": ""}), Q(**{self.path: ""})
        return [
            ListPart(runs.filter(has), self.keys, self.path, has_figure=True),
            ListPart(runs.filter(has_not), ("-created_at", "-id"), self.path, has_figure=False),
        ]


def sort_named(text: str) -> Sort:
    """Read "-largest" as the largest first. ValueError says what there is instead."""
    key = text.removeprefix("-")
    if key not in COLUMNS or not COLUMNS[key].order:
        sortable = ", ".join(column.key for column in COLUMNS.values() if column.order)
        raise ValueError(f"Runs are not sorted by “{key}”. They are by: {sortable}; with - before it, in reverse.")
    return Sort(COLUMNS[key], text.startswith("-"))
