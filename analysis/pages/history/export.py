"""All runs of a view as CSV or JSON, in bytes and seconds, streamed while they are read.

Rows are read and written in chunks, so a million rows take no more memory than one chunk.
"""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from django.db.models import QuerySet

from analysis.models import Run
from engine.spec import TRAINING_SETTINGS

ROWS_AT_ONCE = 2_000

_PATHS = {
    "id": "id",
    "kind": "kind",
    "name": "name",
    "state": "state",
    "model": "model",
    "gpu_name": "device_name",
    "host": "device__host__name",
    "device": "device__device",
    "user": "requested_by__username",
    "precision": "precision",
    "optimizer": "optimizer",
    "created_at": "created_at",
    "started_at": "started_at",
    "finished_at": "finished_at",
    "capacity_bytes": "capacity_bytes",
    "limit_bytes": "limit_bytes",
    "largest_batch_size": "largest_batch_size",
    "certified": "certified",
    "boundary_reason": "boundary_reason",
    "verdict": "verdict",
    "recommended_batch_size": "recommended_batch_size",
    "recommended_samples_per_second": "recommended_samples_per_second",
    "recommended_memory_bytes": "recommended_memory_bytes",
    "current_batch_size": "current_batch_size",
    "current_waste_bytes": "current_waste_bytes",
    "speedup": "speedup",
    "speedup_low": "speedup_low",
    "speedup_high": "speedup_high",
    "is_speed_measurable": "is_speed_measurable",
    "saving_per_run_usd": "saving_per_run_usd",
    "saving_per_year_usd": "saving_per_year_usd",
    "saving_per_year_usd_low": "saving_per_year_usd_low",
    "saving_per_year_usd_high": "saving_per_year_usd_high",
    "cost_per_million_samples_usd": "cost_per_million_samples_usd",
    "estimated_largest_batch_size": "estimated_largest_batch_size",
    "estimated_safe_batch_size": "estimated_safe_batch_size",
    "is_shared": "is_shared",
    "is_baseline": "is_baseline",
    "reported_from": "reported_from",
    "is_trusted": "is_trusted",
    "error_code": "error_code",
    "note": "note",
    "spec": "spec",
}
SETTINGS = (
    *("sequence_length", "image_size"),
    *(name for name in TRAINING_SETTINGS if name not in _PATHS),
    *("memory_limit_bytes", "reserve_fraction"),
)
"""Of the spec, in columns of their own: None where the run left the setting to its default."""

FIELDS = (*(name for name in _PATHS if name != "spec"), *SETTINGS, "tags")
_WRITTEN = [FIELDS.index(name) for name in ("name", "note", "user", "gpu_name", "host", "reported_from")]
_MOMENTS = [FIELDS.index(name) for name in ("created_at", "started_at", "finished_at")]
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_chunks(querysets: Iterable[QuerySet[Run]]) -> Iterator[str]:
    """Yield a head, then a line for each run. Tags stand in one cell, between spaces."""
    yield ",".join(FIELDS) + "\r\n"
    for rows in _chunks(querysets):
        written = io.StringIO()
        csv.writer(written).writerows(map(_cells, rows))
        yield written.getvalue()


def json_chunks(querysets: Iterable[QuerySet[Run]]) -> Iterator[str]:
    """One array with an object for each run, each on a line of its own."""
    start = "[\n"
    for rows in _chunks(querysets):
        yield start + ",\n".join(_encode(dict(zip(FIELDS, row, strict=True))) for row in rows)
        start = ",\n"
    yield "[]\n" if start == "[\n" else "\n]\n"


def _chunks(querysets: Iterable[QuerySet[Run]]) -> Iterator[list[list[Any]]]:
    """Rows, each in the order of FIELDS."""
    for queryset in querysets:
        # PostgreSQL keeps these rows on its side until they are requested; SQLite has a cursor in any case
        read = queryset.values_list(*_PATHS.values()).iterator(chunk_size=ROWS_AT_ONCE)
        while chunk := list(islice(read, ROWS_AT_ONCE)):
            tags = _tags([row[0] for row in chunk])
            yield [_flat(row, tags) for row in chunk]


def _flat(row: Sequence[Any], tags: Mapping[int, list[str]]) -> list[Any]:
    *columns, spec = row
    return [*columns, *(spec.get(name) for name in SETTINGS), tags.get(row[0], [])]


def _tags(run_ids: Iterable[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    through = Run.tags.through.objects.filter(run__in=run_ids).order_by("tag__name")
    for run_id, name in through.values_list("run_id", "tag__name"):
        found[run_id].append(name)
    return found


def _cells(row: list[Any]) -> list[Any]:
    """As CSV: no text of people that a spreadsheet would take for a formula. The row itself is changed: it is quick."""
    for place in _WRITTEN:
        if row[place] and row[place].startswith(_FORMULA):
            row[place] = f"'{row[place]}"
    for place in _MOMENTS:
        if row[place] is not None:
            row[place] = row[place].isoformat()
    row[-1] = " ".join(row[-1])
    return row


_encode = json.JSONEncoder(ensure_ascii=False, default=lambda moment: moment.isoformat()).encode
