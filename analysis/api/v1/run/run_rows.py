"""A list of runs, read straight into what JSON takes: what `RunSerializer` describes, without a field for each cell.

Lists of runs are read most of all. With DRF's fields a request for 100 runs takes five times as long (126 ms, not 24).
The serializer stays the one place that says which members there are; a test holds both to the same answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from rest_framework.fields import DateTimeField

from analysis.api.v1.base.serializers import FORECAST, RunSerializer, cell, forecast_row
from analysis.models import Run, State
from analysis.presentation.origin import origin_text
from analysis.runs.queue.forecast import positions_of
from engine.kinds import KINDS

Row = dict[str, Any]
_NOT_COLUMNS = ("tags", "origin", *FORECAST)
_PUBLISHED = {"published_kind": "kind__published"}
"""What a run has as a property, and the database as a column."""


def run_rows(numbers: Sequence[int], *, forecast: bool = True) -> list[Row]:
    """Read these runs as `RunSerializer` answers them, in this order; those that are gone are left out.

    Without `forecast` its members are null.
    """
    layout = _layout()
    paths = (_PUBLISHED.get(path, path) for path in layout.paths)
    read = Run.all_runs.filter(pk__in=numbers).order_by().values_list(*paths)
    rows = {row["id"]: row for row in map(layout.row, read)}
    tags = _tags(rows)
    waiting = {pk for pk, row in rows.items() if row["state"] == State.QUEUED and KINDS[row["kind"]].uses_device}
    positions = positions_of(waiting) if forecast else {}
    for pk, row in rows.items():
        row["tags"] = tags.get(pk, [])
        row["origin"] = origin_text(row["reported_from"], row["requested_by"])
        if (turn := positions.get(pk)) is not None:
            row |= forecast_row(turn)
    return [rows[number] for number in numbers if number in rows]


@dataclass(frozen=True, slots=True)
class _Layout:
    """The members of an answer in their order, the columns of those that have one, and where moments stand."""

    members: tuple[str, ...]
    paths: tuple[str, ...]
    moments: tuple[int, ...]
    gaps: tuple[int, ...]

    def row(self, values: Iterable[Any]) -> Row:
        """Write the columns of one run; what is no column is null."""
        cells = list(values)
        for place in self.moments:
            cells[place] = cell(cells[place])
        for place in self.gaps:
            cells.insert(place, None)
        return dict(zip(self.members, cells, strict=True))


@cache
def _layout() -> _Layout:
    fields = RunSerializer().fields
    columns = {name: field for name, field in fields.items() if name not in _NOT_COLUMNS}
    return _Layout(
        members=tuple(fields),
        paths=tuple((field.source or name).replace(".", "__") for name, field in columns.items()),
        moments=tuple(place for place, field in enumerate(columns.values()) if isinstance(field, DateTimeField)),
        gaps=tuple(place for place, name in enumerate(fields) if name in _NOT_COLUMNS),
    )


def _tags(numbers: Iterable[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    through = Run.tags.through.objects.filter(run__in=list(numbers)).order_by("tag__name")
    for run_id, name in through.values_list("run_id", "tag__name"):
        found[run_id].append(name)
    return found
