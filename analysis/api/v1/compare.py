"""Runs beside each other: what differs in settings and surroundings, and every figure against a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.permissions import MayRead
from analysis.api.v1.serializer_bases import StrictBody
from analysis.api.v1.strict_view import StrictView
from analysis.http.problem_details import bad_field
from analysis.http.query_string import LARGEST_ID, BadQuery
from analysis.models import Run
from analysis.pages.compare.compared_run import ComparedRun, compared_run_of
from analysis.pages.compare.context import baseline_of
from analysis.pages.compare.environment import COMPARABILITY_FACTS, environment_title
from analysis.pages.compare.load import carried_probe_counts, compared_runs
from analysis.pages.compare.metrics import MetricRow, common_batch_size, metric_rows
from analysis.pages.compare.query import COMPARED_MAX, CompareQuery
from engine.catalog import WORKLOADS

_TITLES = {
    "device_name": "GPU",
    "capacity_bytes": "Capacity",
    "driver": "Driver",
    "compute_capability": "Compute capability",
    "is_shared": "Shared device",
    "foreign_used_bytes": "",
    "carried_probes": "Carried-over probes",
}
"""What was recorded of a device, and how the page names it: there it stands which of it may move figures."""


_VERDICT = (
    "It is `same` where the two intervals meet, or where speeds are within 3 %. It is empty where neither is better, "
    "as between different models, or between an estimate and a measurement, and where nothing was compared."
)


class CompareBodySerializer(StrictBody):
    """Which runs, and which of them the others are compared with."""

    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID),
        min_length=2,
        max_length=COMPARED_MAX,
        help_text="The runs, in the order of the answer.",
    )
    baseline = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, help_text="One of them; else the first that has a result."
    )


class ComparedRunSerializer(serializers.Serializer[ComparedRun]):
    """A run of the comparison. One without a result is listed, and has no figures."""

    id = serializers.IntegerField(source="run_id")
    kind = serializers.ChoiceField(Run.Kind.choices, source="run.kind")
    state = serializers.CharField(source="run.state")
    model = serializers.CharField(source="run.model")
    has_figures = serializers.SerializerMethodField()
    caveat = serializers.CharField(help_text="Why its figures are to be taken with care; empty: nothing is known.")

    def get_has_figures(self, subject: ComparedRun) -> bool:
        return subject.outcome is not None


class AlignedSerializer(serializers.Serializer[Any]):
    """One setting or fact, with its value for every run, in the order of the runs. null: not recorded, or a default."""

    name = serializers.CharField()
    differs = serializers.BooleanField()
    values = serializers.ListField(child=serializers.JSONField())


class FactSerializer(AlignedSerializer):
    """One fact of the surroundings."""

    may_move_figures = serializers.BooleanField(help_text="A difference in it may explain a difference in the figures.")


class FigureField(serializers.FloatField):
    """A number as it is: whole ones stay whole."""

    # the stubs have DRF's own field answer text; it answers a float
    def to_representation(self, value: float) -> float:  # type: ignore[override]
        return value


class FigureCellSerializer(serializers.Serializer[Any]):
    """One run's figure. Differences are from the baseline's; `difference_fraction` 0.06 is 6 % more."""

    value = FigureField(allow_null=True)
    low = FigureField(
        allow_null=True,
        help_text=(
            "The lower end of the interval that holds the true figure in 95 of 100 such measurements. It is null where "
            "no interval is known."
        ),
    )
    high = FigureField(allow_null=True, help_text="The upper end of that interval.")
    difference = FigureField(allow_null=True)
    difference_fraction = FigureField(allow_null=True)
    verdict = serializers.ChoiceField(["better", "worse", "same", ""], help_text=_VERDICT)


class FigureSerializer(serializers.Serializer[Any]):
    """One figure of every run, in the unit of its name."""

    name = serializers.CharField()
    kind = serializers.ChoiceField(["measured", "derived"], help_text="Of measurements; an estimate's are estimated.")
    cells = FigureCellSerializer(many=True)


class ComparisonSerializer(serializers.Serializer[Any]):
    """The aligned table."""

    baseline = serializers.IntegerField(allow_null=True)
    runs = ComparedRunSerializer(many=True)
    mismatches = serializers.ListField(
        child=serializers.CharField(), help_text="Facts that differ and may move the figures by themselves."
    )
    settings = AlignedSerializer(many=True)
    environment = FactSerializer(many=True)
    common_batch_size = serializers.IntegerField(
        allow_null=True, help_text="The largest one that every run measured: the figures named common are at it."
    )
    figures = FigureSerializer(many=True)


class Compare(StrictView):
    """A POST that changes nothing: the list of runs may be long."""

    permission_classes = (MayRead,)

    @extend_schema(
        tags=["comparison"],
        operation_id="compare",
        request=CompareBodySerializer,
        responses=ComparisonSerializer,
    )
    def post(self, request: Request) -> Response:
        """Two to fifty runs as one table. Estimates may stand beside measurements."""
        body = CompareBodySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            query = _query(body.validated_data)
            runs = compared_runs(query)
        except BadQuery as error:
            raise bad_field(error.parameter, error.message) from error
        return Response(ComparisonSerializer(_table(runs, query)).data)


def _query(values: Mapping[str, Any]) -> CompareQuery:
    ids = tuple(dict.fromkeys(values["ids"]))
    if len(ids) < 2:
        raise BadQuery("ids", "name at least two different runs")
    baseline = values.get("baseline")
    if baseline is not None and baseline not in ids:
        raise BadQuery("baseline", f"{baseline} is not one of the runs compared")
    return CompareQuery(ids, baseline)


def _table(runs: Sequence[Run], query: CompareQuery) -> dict[str, Any]:
    carried = carried_probe_counts(query.ids)
    subjects = [compared_run_of(run, carried.get(run.pk, 0)) for run in runs]
    baseline = baseline_of(subjects, query)
    environment = _environment(subjects, carried)
    return {
        "baseline": baseline and baseline.run_id,
        "runs": subjects,
        "mismatches": [row["name"] for row in environment if row["differs"] and row["may_move_figures"]],
        "settings": _aligned([_settings(run) for run in runs]),
        "environment": environment,
        "common_batch_size": common_batch_size(subjects),
        "figures": [_figure(row) for row in metric_rows(subjects, baseline)],
    }


def _settings(run: Run) -> dict[str, Any]:
    """Its spec without the device, which the surroundings name, and with the input size that a default stands for."""
    spec = {name: value for name, value in run.spec.items() if name != "device"}
    workload = WORKLOADS.get(run.model)
    if workload and spec.get(workload.input_field) is None:
        spec[workload.input_field] = workload.default_input_size
    return spec


def _environment(subjects: Sequence[ComparedRun], carried: Mapping[int, int]) -> list[dict[str, Any]]:
    """Align the facts. An estimate has no driver, a run without a result nothing: neither makes a difference."""
    facts = [_facts(subject, carried.get(subject.run_id, 0)) for subject in subjects]
    return [{**row, "may_move_figures": _may_move_figures(row["name"])} for row in _aligned(facts)]


def _may_move_figures(name: str) -> bool:
    return (_TITLES[name] if name in _TITLES else environment_title(name)) in COMPARABILITY_FACTS


def _facts(subject: ComparedRun, carried: int) -> dict[str, Any]:
    """Read what was recorded, as it was recorded."""
    if subject.outcome is None:
        return {}
    result = subject.run.result or {}
    if subject.is_estimate:
        [estimate] = result["estimates"]
        gpu = estimate["gpu"]
        return {"device_name": gpu["name"], "capacity_bytes": gpu["total_bytes"], **(estimate.get("versions") or {})}
    device = {**result["device"], "device_name": result["device"]["name"], "carried_probes": carried}
    return {**{name: device.get(name) for name in _TITLES}, **result["environment"]}


def _aligned(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return [
        {
            "name": name,
            "differs": len(_different(row[name] for row in rows if name in row)) > 1,
            "values": [row.get(name) for row in rows],
        }
        for name in names
    ]


def _different(values: Iterable[Any]) -> list[Any]:
    """Each once; values of JSON need not be hashable."""
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _figure(row: MetricRow) -> dict[str, Any]:
    return {
        "name": row.key,
        "kind": row.kind,
        "cells": [
            {
                "value": cell.value,
                "low": cell.interval[0] if cell.interval else None,
                "high": cell.interval[1] if cell.interval else None,
                "difference": cell.delta and cell.delta.difference,
                "difference_fraction": cell.delta and cell.delta.fraction,
                "verdict": cell.delta.verdict if cell.delta else "",
            }
            for cell in row.cells
        ],
    }
