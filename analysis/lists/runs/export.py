"""All runs of a view as CSV or JSON, in bytes and seconds, read and written in chunks of bounded memory."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from analysis.http.csv_file import csv_text
from analysis.models import Run
from engine.settings.spec import TRAINING_SETTINGS

ROWS_AT_ONCE = 2_000

_COLUMNS = (
    *("id", "kind", "name", "state", "model", "gpu_name", "host", "device", "user", "precision", "optimizer"),
    *("created_at", "started_at", "finished_at", "capacity_bytes", "limit_bytes"),
    *("largest_batch_size", "certified", "boundary_reason", "verdict"),
    *("recommended_batch_size", "recommended_samples_per_second", "recommended_memory_bytes"),
    *("current_batch_size", "current_waste_bytes"),
    *("speedup", "speedup_low", "speedup_high", "is_speed_measurable"),
    *("saving_per_run_usd", "saving_per_year_usd", "saving_per_year_usd_low", "saving_per_year_usd_high"),
    *("cost_per_million_samples_usd", "estimated_largest_batch_size", "estimated_safe_batch_size"),
    *("is_shared", "is_baseline", "reported_from", "is_trusted", "error_code", "note"),
)
_PATHS = {
    "kind": "kind__published",
    "gpu_name": "device_name",
    "host": "device__host__name",
    "device": "device__device",
    "user": "requested_by__username",
}
"""Where a column is read that is not a field of the run by this name."""
SETTINGS = (
    *("sequence_length", "image_size"),
    *(name for name in TRAINING_SETTINGS if name not in _COLUMNS),
    *("memory_limit_bytes", "reserve_fraction", "reserve_bytes"),
)
"""Settings of the spec with columns of their own; None means the default."""

FIELDS = (*_COLUMNS, *SETTINGS, "tags")
_MOMENTS = [FIELDS.index(name) for name in ("created_at", "started_at", "finished_at")]


def run_file(form: str, querysets: Iterable[QuerySet[Run]]) -> StreamingHttpResponse:
    file = StreamingHttpResponse(
        json_chunks(querysets) if form == "json" else csv_chunks(querysets),
        content_type="application/json" if form == "json" else "text/csv; charset=utf-8",
    )
    file.headers["Content-Disposition"] = f'attachment; filename="memorymark-runs.{form}"'
    return file


def csv_chunks(querysets: Iterable[QuerySet[Run]]) -> Iterator[str]:
    """Yield a head, then a line for each run. Tags stand in one cell, between spaces."""
    yield ",".join(FIELDS) + "\r\n"
    for rows in _chunks(querysets):
        for row in rows:  # changed in place: a copy would take time
            for place in _MOMENTS:
                if row[place] is not None:
                    row[place] = row[place].isoformat()
            row[-1] = " ".join(row[-1])
        yield csv_text(rows)


def json_chunks(querysets: Iterable[QuerySet[Run]]) -> Iterator[str]:
    """Yield one array with an object for each run, each on a line of its own."""
    start = "[\n"
    for rows in _chunks(querysets):
        yield start + ",\n".join(_encode(dict(zip(FIELDS, row, strict=True))) for row in rows)
        start = ",\n"
    yield "[]\n" if start == "[\n" else "\n]\n"


def _chunks(querysets: Iterable[QuerySet[Run]]) -> Iterator[list[list[Any]]]:
    """Yield lists of rows, each row in the order of FIELDS."""
    paths = [*(_PATHS.get(name, name) for name in _COLUMNS), "spec"]
    for queryset in querysets:
        # PostgreSQL keeps these rows on its side until they are requested; SQLite has a cursor in any case
        read = queryset.values_list(*paths).iterator(chunk_size=ROWS_AT_ONCE)
        while chunk := list(islice(read, ROWS_AT_ONCE)):
            tags: dict[int, list[str]] = defaultdict(list)
            through = Run.tags.through.objects.filter(run__in=[row[0] for row in chunk]).order_by("tag__name")
            for run_id, name in through.values_list("run_id", "tag__name"):
                tags[run_id].append(name)
            yield [[*row, *(spec.get(name) for name in SETTINGS), tags.get(row[0], [])] for *row, spec in chunk]


_encode = json.JSONEncoder(ensure_ascii=False, default=lambda moment: moment.isoformat()).encode
