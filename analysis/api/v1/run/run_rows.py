"""A list of runs, read straight into what JSON takes: what `RunSerializer` describes, without a field for each cell.

Lists of runs are read most of all. With DRF's fields a request for 100 runs takes five times as long (126 ms, not 24).
The serializer stays the one place that says which members there are; a test holds both to the same answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from analysis.api.v1.base.serializers import FORECAST, RunSerializer, cell, forecast_row
from analysis.models import Run, State
from analysis.presentation.origin import origin_text
from analysis.runs.queue.forecast import positions_of
from engine.kinds import KINDS

_NOT_COLUMNS = ("tags", "origin", *FORECAST)
_PUBLISHED = {"published_kind": "kind__published"}
"""What a run has as a property, and the database as a column."""


def run_rows(numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Read these runs as `RunSerializer` answers them, in this order; those that are gone are left out."""
    members = _members()
    columns = [name for name, path in members.items() if path]
    read = Run.all_runs.filter(pk__in=numbers).order_by().values_list(*filter(None, members.values()))
    unknown: dict[str, Any] = dict.fromkeys(members)
    found = (unknown | dict(zip(columns, map(cell, values), strict=True)) for values in read)
    rows = {row["id"]: row for row in found}
    tags = _tags(rows)
    waiting = {pk for pk, row in rows.items() if row["state"] == State.QUEUED and KINDS[row["kind"]].uses_device}
    positions = positions_of(waiting)
    for pk, row in rows.items():
        origin = origin_text(row["reported_from"], row["requested_by"])
        row |= {"tags": tags.get(pk, []), "origin": origin, **forecast_row(positions.get(pk))}
    return [rows[number] for number in numbers if number in rows]


@cache
def _members() -> Mapping[str, str]:
    """Name the members in the order of the answer, each with its column; empty: it has none."""
    paths = {name: (field.source or name).replace(".", "__") for name, field in RunSerializer().fields.items()}
    return {name: "" if name in _NOT_COLUMNS else _PUBLISHED.get(path, path) for name, path in paths.items()}


def _tags(numbers: Iterable[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    through = Run.tags.through.objects.filter(run__in=list(numbers)).order_by("tag__name")
    for run_id, name in through.values_list("run_id", "tag__name"):
        found[run_id].append(name)
    return found
