"""One workload on one card over time: its points, the steps in them, and notes on the steps."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.v1.base.serializers import OriginSerializer
from analysis.api.v1.base.strict_input import StrictBody, StrictText, validated
from analysis.api.v1.base.views import StrictView
from analysis.http.problem_details import Problem, bad_field
from analysis.http.query_string import LARGEST_ID
from analysis.lists.trend.query import (
    SAMPLES_MAX,
    TrendForm,
    acknowledgements_of,
    ids_of_series,
    measured_runs,
    samples_of,
)
from analysis.lists.trend.series import (
    BOUNDARY,
    METRICS,
    PEAK,
    SPEED,
    Sample,
    Series,
    StepFound,
    series_of,
    steps_found,
)
from analysis.models import TrendAcknowledgement
from analysis.models.annotations import STEP_NOTE_LENGTH
from analysis.permissions import signed_in_user
from analysis.runs import services

_UNITS = {BOUNDARY: "samples", PEAK: "bytes", SPEED: "samples_per_second"}


class AcknowledgementSerializer(serializers.ModelSerializer[TrendAcknowledgement]):
    """A person's note on the step that begins with this run."""

    acknowledged_by = serializers.CharField(source="acknowledged_by.username", default=None, allow_null=True)

    class Meta:
        model = TrendAcknowledgement
        fields = ("run", "metric", "note", "acknowledged_by", "acknowledged_at")


class ChangeSerializer(serializers.Serializer[Any]):
    """A fact of the environment that changed, as text."""

    name = serializers.CharField()
    before = serializers.CharField()
    after = serializers.CharField()


class StepSerializer(OriginSerializer):
    """A lasting change of the figure, with the origin of its first run. `fraction` 0.06 is 6 % up."""

    run = serializers.IntegerField(source="after.run_id", help_text="Id of the first run after the step.")
    previous_run = serializers.IntegerField(source="before.run_id")
    before = serializers.FloatField(source="step.before", help_text="Median before the step.")
    after = serializers.FloatField(source="step.after", help_text="Median after the step.")
    fraction = serializers.FloatField(source="step.fraction")
    is_worse = serializers.BooleanField()
    changes = serializers.SerializerMethodField()
    acknowledgement = AcknowledgementSerializer(allow_null=True)

    @extend_schema_field(ChangeSerializer(many=True))
    def get_changes(self, found: StepFound) -> list[dict[str, str]]:
        return [dict(zip(("name", "before", "after"), change, strict=True)) for change in found.changes]


class PointSerializer(OriginSerializer):
    """One run's figure."""

    run = serializers.IntegerField(source="sample.run_id")
    finished_at = serializers.DateTimeField(source="sample.at")
    value = serializers.FloatField()
    low = serializers.FloatField(
        source="interval.low", allow_null=True, help_text="Lower end of the 95 % interval of a speed."
    )
    high = serializers.FloatField(source="interval.high", allow_null=True)


class SeriesSerializer(serializers.Serializer[Any]):
    """A figure over time, oldest first."""

    metric = serializers.ChoiceField(METRICS)
    unit = serializers.ChoiceField(list(_UNITS.values()))
    better = serializers.ChoiceField(["higher", "lower"])
    batch_size = serializers.IntegerField(allow_null=True, help_text="Batch size of a series of peak memory or speed.")
    points = PointSerializer(many=True)
    steps = StepSerializer(many=True)


class LeftOutSerializer(serializers.Serializer[Sample]):
    """A run that is not part of the series."""

    run = serializers.IntegerField(source="run_id")
    finished_at = serializers.DateTimeField(source="at")
    reason = serializers.CharField(source="left_out")


class TrendSerializer(serializers.Serializer[Any]):
    """A series of runs over time."""

    settings = serializers.DictField(child=serializers.JSONField(), help_text="Settings of all runs in the series.")
    is_cut = serializers.BooleanField(
        help_text=f"Whether there are older runs: only the newest {SAMPLES_MAX} are included."
    )
    series = SeriesSerializer(many=True)
    left_out = LeftOutSerializer(many=True)


class AcknowledgeBodySerializer(StrictBody):
    """A note on the step that begins with this run."""

    run = serializers.IntegerField(min_value=1, max_value=LARGEST_ID)
    metric = serializers.ChoiceField(METRICS)
    note = StrictText(lines=True, max_length=STEP_NOTE_LENGTH)


class Trend(StrictView):
    """The trend of a series: `?model=bert&gpu=NVIDIA A100-SXM4-80GB`. Other settings default to those of a new run."""

    query_form = TrendForm

    @extend_schema(operation_id="trends_retrieve", responses=TrendSerializer)
    def get(self, request: Request) -> Response:
        """List the finished measurements of one workload, settings and card, oldest first, with the detected steps."""
        query = self.query.series
        ids = ids_of_series(query)
        samples = samples_of(ids[:SAMPLES_MAX])
        acknowledgements = acknowledgements_of(ids)
        answer = {
            "settings": query.parameters,
            "is_cut": len(ids) > SAMPLES_MAX,
            "series": [
                {
                    "metric": series.key,
                    "unit": _UNITS[series.key],
                    "better": series.better,
                    "batch_size": series.batch_size,
                    "points": _points(series),
                    "steps": steps_found(series, acknowledgements),
                }
                for series in series_of(samples)
            ],
            "left_out": [sample for sample in samples if sample.left_out],
        }
        return Response(TrendSerializer(answer).data)


class TrendNotes(StrictView):
    @extend_schema(
        operation_id="trends_acknowledge", request=AcknowledgeBodySerializer, responses=AcknowledgementSerializer
    )
    def post(self, request: Request) -> Response:
        """Add a note to the step that begins with a run, replacing one's own earlier note; GPU managers, any note."""
        values = validated(AcknowledgeBodySerializer, request.data)
        run = measured_runs().filter(pk=values["run"]).first()
        if run is None:
            raise bad_field("run", f"no finished measurement has the id {values['run']}", "does_not_exist")
        if not services.step_acknowledge(
            run=run, metric=values["metric"], note=values["note"], acknowledged_by=signed_in_user(request)
        ):
            raise Problem(
                403, detail="The note on this step is another person's: they or a GPU manager can replace it."
            )
        note = TrendAcknowledgement.objects.select_related("acknowledged_by").get(run=run, metric=values["metric"])
        return Response(AcknowledgementSerializer(note).data)


def _points(series: Series) -> list[dict[str, Any]]:
    intervals = series.intervals or [None] * len(series.values)
    return [
        {"sample": sample, "origin": sample.origin, "value": value, "interval": interval}
        for sample, value, interval in zip(series.samples, series.values, intervals, strict=True)
    ]
