"""Comparison of runs: differences in settings and environment, and every figure relative to a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.permissions import MayRead
from analysis.api.v1.base.serializers import OriginSerializer
from analysis.api.v1.base.strict_input import StrictBody, validated
from analysis.api.v1.base.views import StrictView
from analysis.http.problem_details import bad_field
from analysis.http.query_string import LARGEST_ID, BadQuery
from analysis.lists.comparison.compared_run import ComparedRun, baseline_of, compared_run_of
from analysis.lists.comparison.metrics import MetricRow, common_batch_size
from analysis.lists.comparison.query import (
    COMPARED_MAX,
    CompareQuery,
    batch_sizes_only,
    carried_probe_counts,
    stored_runs,
)
from analysis.lists.comparison.scaling import figure_rows
from analysis.lists.environment import MAY_AFFECT_FIGURES
from analysis.models import PUBLISHED_KINDS, Run
from engine.estimate.spec import OWN
from engine.questions.kinds import read_result
from engine.settings.catalog.stored_workload import stored_workload

_VERDICT = (
    "`same` where the two intervals overlap, where speeds are within 3 %, or where they differ by less than 0.05 %. "
    "Empty where neither is better, as between an estimate and a measurement or two memory limits of one GPU, and "
    "where there is no comparison, as between different models or two lower bounds."
)


class CompareBodySerializer(StrictBody):
    """The runs to compare, and their baseline."""

    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID),
        min_length=2,
        max_length=COMPARED_MAX,
        help_text="Ids of the runs. The response keeps their order.",
    )
    baseline = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        help_text="Id of the baseline, one of `ids`. Default: the first run that has a result.",
    )


class ComparedRunSerializer(OriginSerializer):
    """A run of the comparison. A run without a result is listed without figures."""

    id = serializers.IntegerField(source="run_id")
    kind = serializers.ChoiceField(PUBLISHED_KINDS, source="run.published_kind")
    state = serializers.CharField(source="run.state")
    model = serializers.CharField(source="run.model")
    has_figures = serializers.SerializerMethodField()
    caveat = serializers.CharField(help_text="Why its figures need care. Empty: no known reason.")

    def get_has_figures(self, subject: ComparedRun) -> bool:
        return subject.outcome is not None


class AlignedSerializer(serializers.Serializer[Any]):
    """A setting or fact, with its value for every run, in their order. null: not recorded, or a default."""

    name = serializers.CharField()
    differs = serializers.BooleanField()
    values = serializers.ListField(child=serializers.JSONField())


class FactSerializer(AlignedSerializer):
    """A fact of the environment."""

    may_move_figures = serializers.BooleanField(
        help_text="Whether a difference in this fact may explain different figures."
    )


class FigureField(serializers.FloatField):
    """A number; integers stay integers."""

    # according to the stubs DRF's own field returns text; it returns a float
    def to_representation(self, value: float) -> float:  # type: ignore[override]
        return value


class FigureCellSerializer(serializers.Serializer[Any]):
    """One run's figure, with its difference from the baseline's; `difference_fraction` 0.06 is 6 % more."""

    value = FigureField(allow_null=True)
    low = FigureField(
        allow_null=True,
        help_text=("Lower end of the figure's 95 % confidence interval. It is null where no interval is known."),
    )
    high = FigureField(allow_null=True, help_text="Upper end of the figure's 95 % confidence interval.")
    difference = FigureField(allow_null=True)
    difference_fraction = FigureField(allow_null=True)
    is_lower_bound = serializers.BooleanField(
        help_text="Whether the value is a lower bound: the search ended there before its limit was known."
    )
    difference_is_bound = serializers.BooleanField(
        help_text="Whether the difference is at least so much, because one of the two figures is a lower bound."
    )
    verdict = serializers.ChoiceField(["better", "worse", "same", ""], help_text=_VERDICT)


class FigureSerializer(serializers.Serializer[Any]):
    """One figure of every run, in the unit that its name states."""

    name = serializers.CharField()
    kind = serializers.ChoiceField(
        ["measured", "estimated", "derived"],
        help_text="How a measurement's figure was obtained. Figures of estimates are estimated.",
    )
    cells = FigureCellSerializer(many=True)


class ComparisonSerializer(serializers.Serializer[Any]):
    """The comparison as a table."""

    baseline = serializers.IntegerField(allow_null=True)
    runs = ComparedRunSerializer(many=True)
    mismatches = serializers.ListField(
        child=serializers.CharField(), help_text="Facts that differ and may by themselves affect the figures."
    )
    settings = AlignedSerializer(many=True)
    environment = FactSerializer(many=True)
    common_batch_size = serializers.IntegerField(
        allow_null=True,
        help_text="Largest batch size that every run measured. Figures named `common` are at this size.",
    )
    figures = FigureSerializer(many=True)


class Compare(StrictView):
    """A POST that changes nothing, because the list of runs may be long for an address."""

    permission_classes = (MayRead,)

    @extend_schema(operation_id="compare", request=CompareBodySerializer, responses=ComparisonSerializer)
    def post(self, request: Request) -> Response:
        """Compare two to fifty runs in one table. Estimates can be compared with measurements."""
        values = validated(CompareBodySerializer, request.data)
        try:
            query = CompareQuery(tuple(dict.fromkeys(values["ids"])), values.get("baseline"))
            runs = batch_sizes_only(stored_runs(query.ids))
        except BadQuery as error:
            [problem] = error.problems
            raise bad_field(problem.parameter, problem.message) from error
        return Response(ComparisonSerializer(_table(runs, query)).data)


def _table(runs: Sequence[Run], query: CompareQuery) -> dict[str, Any]:
    carried = carried_probe_counts(query.ids)
    subjects = [compared_run_of(run, carried.get(run.pk, 0)) for run in runs]
    baseline = baseline_of(subjects, query)
    facts = [_facts(subject, carried.get(subject.run_id, 0)) for subject in subjects]
    environment = [{**row, "may_move_figures": row["name"] in MAY_AFFECT_FIGURES} for row in _aligned(facts)]
    return {
        "baseline": baseline and baseline.run_id,
        "runs": subjects,
        "mismatches": [row["name"] for row in environment if row["differs"] and row["may_move_figures"]],
        "settings": _aligned([_settings(subject.spec) for subject in subjects]),
        "environment": environment,
        "common_batch_size": common_batch_size(subjects),
        "figures": [_figure(row) for row in figure_rows(subjects, baseline)],
    }


def _settings(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec without device or card, which are in the environment, and with an explicit input size."""
    spec = {name: value for name, value in stored.items() if name not in ("device", *OWN)}
    workload = stored_workload(stored)
    if workload and spec.get(workload.input_field) is None:
        spec[workload.input_field] = workload.default_input_size
    return spec


def _facts(subject: ComparedRun, carried: int) -> dict[str, Any]:
    if subject.outcome is None:
        return {}
    result = read_result(subject.run.result or {})
    facts = result.recorded_facts()
    return {**facts, "carried_probes": carried} if result.probes else facts


def _aligned(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Align what the runs have. What is missing, as of an estimate or a run without a result, is no difference."""
    aligned = []
    for name in dict.fromkeys(name for row in rows for name in row):
        known = [row[name] for row in rows if name in row]
        differs = any(value != known[0] for value in known)
        aligned.append({"name": name, "differs": differs, "values": [row.get(name) for row in rows]})
    return aligned


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
                "is_lower_bound": cell.is_lower_bound,
                "difference_is_bound": bool(cell.delta and cell.delta.is_bound),
                "verdict": cell.delta.verdict if cell.delta else "",
            }
            for cell in row.cells
        ],
    }
