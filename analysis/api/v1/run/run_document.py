"""One run as a file: its probes as CSV, in bytes and seconds, or all its data as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from analysis.api.v1.base.serializers import RunDetailSerializer
from analysis.http.csv_file import csv_text
from analysis.models import Measurement, Run
from analysis.presentation.origin import Origin, origin_members
from analysis.presentation.unreadable import read_or_none
from engine.facts.result import MemoryByKind, Probe
from engine.questions.kinds import read_result

_MEMORY_COLUMNS = tuple(field.name for field in fields(MemoryByKind))
_PLAIN = tuple(f.name for f in fields(Probe) if f.name not in ("memory_by_kind", "timed_step_seconds"))
_ORIGIN = tuple(field.name for field in fields(Origin))
COLUMNS = (*_PLAIN, *_MEMORY_COLUMNS, "timed_step_seconds", *_ORIGIN)


@require_safe
def run_json_file(request: HttpRequest, run_id: int) -> HttpResponse:
    run = _run(run_id)
    return _as_file(JsonResponse(run_json(run), json_dumps_params={"indent": 2}), f"run-{run.pk}.json")


@require_safe
def run_csv_file(request: HttpRequest, run_id: int) -> HttpResponse:
    run = _run(run_id)
    return _as_file(HttpResponse(run_csv(run), content_type="text/csv; charset=utf-8"), f"run-{run.pk}-probes.csv")


def run_json(run: Run) -> dict[str, Any]:
    """Return a run in the format of version 1 of the API."""
    return dict(RunDetailSerializer(run, context={"queue_positions": {}}).data)


def run_csv(run: Run) -> str:
    """Write a line for each probe of the last attempt, with the run's origin; a figure not measured is empty."""
    origin = origin_members(run).values()
    return csv_text([COLUMNS, *([*_cells(probe), *origin] for probe in stored_probes(run))])


def stored_probes(run: Run) -> Iterable[Probe]:
    """Return the probes of the result; without a result, those stored so far."""
    result = read_or_none(read_result, run.result)
    if result is not None:
        return result.probes
    return [row.probe for row in Measurement.objects.of(run)]


def _run(run_id: int) -> Run:
    return get_object_or_404(Run.objects.with_places(), pk=run_id)


def _as_file(response: HttpResponse, name: str) -> HttpResponse:
    response.headers["Content-Disposition"] = f'attachment; filename="memorymark-{name}"'
    return response


def _cells(probe: Probe) -> list[Any]:
    kinds = probe.memory_by_kind
    return [
        *(getattr(probe, name) for name in _PLAIN),
        *(getattr(kinds, name) if kinds else None for name in _MEMORY_COLUMNS),
        " ".join(map(str, probe.timed_step_seconds)),
    ]
