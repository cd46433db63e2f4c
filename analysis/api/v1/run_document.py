"""One run as a file: its probes as CSV, in bytes and seconds, or all its data as JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from analysis.api.v1.serializers import RunDetailSerializer
from analysis.models import Measurement, Run
from engine.result import MemoryByKind, Probe

_KINDS = tuple(field.name for field in fields(MemoryByKind))
_PLAIN = tuple(f.name for f in fields(Probe) if f.name not in ("memory_by_kind", "timed_step_seconds"))
COLUMNS = (*_PLAIN, *_KINDS, "timed_step_seconds")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@require_safe
def run_json_file(request: HttpRequest, run_id: int) -> HttpResponse:
    """Answer all data of a run as a JSON file."""
    run = _run(run_id)
    return _as_file(JsonResponse(run_json(run), json_dumps_params={"indent": 2}), f"run-{run.pk}.json")


@require_safe
def run_csv_file(request: HttpRequest, run_id: int) -> HttpResponse:
    """Answer the probes of a run as a CSV file."""
    run = _run(run_id)
    return _as_file(HttpResponse(run_csv(run), content_type="text/csv; charset=utf-8"), f"run-{run.pk}-probes.csv")


def run_json(run: Run) -> dict[str, Any]:
    """Return a run in the format of version 1 of the API."""
    return dict(RunDetailSerializer(run, context={"queue_positions": {}}).data)


def run_csv(run: Run) -> str:
    """Write a line for each probe of the last attempt, in their order. A figure that was not measured is empty."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(COLUMNS)
    writer.writerows(map(_cells, stored_probes(run)))
    return written.getvalue()


def stored_probes(run: Run) -> Iterable[Probe]:
    """Return the probes of the result; without a result, those stored so far."""
    if run.result and "probes" in run.result:
        return [Probe.from_dict(probe) for probe in run.result["probes"]]
    return [row.probe for row in Measurement.objects.of(run)]


def _run(run_id: int) -> Run:
    return get_object_or_404(Run.objects.with_places(), pk=run_id)


def _as_file(response: HttpResponse, name: str) -> HttpResponse:
    response.headers["Content-Disposition"] = f'attachment; filename="memorymark-{name}"'
    return response


def _cells(probe: Probe) -> list[Any]:
    kinds = probe.memory_by_kind
    return [
        *(_text(getattr(probe, name)) for name in _PLAIN),
        *(getattr(kinds, name) if kinds else None for name in _KINDS),
        " ".join(map(str, probe.timed_step_seconds)),
    ]


def _text(value: object) -> object:
    """Escape text that a spreadsheet would read as a formula: an error message may begin with any character."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
