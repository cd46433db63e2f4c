"""The parts of a run: probes, attempts, events, curves, result and certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Max
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api import limits
from analysis.api.kinds import BY_KIND
from analysis.api.result_schema import RESULT
from analysis.api.v1.base import openapi_parameters
from analysis.api.v1.base.serializers import AttemptSerializer, MeasurementSerializer, OriginSerializer
from analysis.api.v1.base.views import StrictViewSet
from analysis.api.v1.run.runs import poll_again, run_or_404
from analysis.http.problem_details import Problem
from analysis.http.query_string import StrictQueryForm, WholeNumberField
from analysis.models import Attempt, Measurement, Run, RunLog, State
from analysis.presentation.origin import origin_members


class AttemptForm(StrictQueryForm):
    attempt = WholeNumberField(
        required=False, max_value=limits.ATTEMPT_MAX, help_text="Number of the attempt. Default: the last one."
    )


class EventSerializer(serializers.ModelSerializer[RunLog]):
    """One log line of the engine or its supervisor."""

    sequence = serializers.IntegerField(
        source="pk", read_only=True, help_text="Increases within the run, over all its attempts."
    )

    class Meta:
        model = RunLog
        fields = ("sequence", "attempt", "recorded_at", "level", "message")
        read_only_fields = fields


class StateMembers(OriginSerializer):
    """The state of a run, as far as every answer about it has it."""

    run = serializers.IntegerField(source="pk")
    state = serializers.ChoiceField(State.choices)
    phase = serializers.CharField()
    attempt = serializers.IntegerField()
    is_over = serializers.BooleanField()


class EventsSerializer(StateMembers):
    """Log lines since a sequence number, with the state of the run."""

    events = EventSerializer(many=True)
    last_sequence = serializers.IntegerField(help_text="Value of `after` for the next request.")


class EventsForm(StrictQueryForm):
    after = WholeNumberField(
        required=False, min_value=0, initial=0, help_text="The last received `sequence`; 0: from the beginning."
    )
    limit = WholeNumberField(
        required=False,
        max_value=limits.LOG_LINES_MAX,
        initial=limits.LOG_LINES,
        help_text="Most events in the response.",
    )


class CurvePointSerializer(serializers.Serializer[Any]):
    """One batch size. `outcome` of an estimate is the expected outcome."""

    batch_size = serializers.IntegerField()
    outcome = serializers.CharField(help_text="fits, out_of_memory, size_limit or error.")
    peak_allocated_bytes = serializers.IntegerField(allow_null=True)
    peak_reserved_bytes = serializers.IntegerField(allow_null=True)
    device_used_bytes = serializers.IntegerField(allow_null=True)
    step_seconds = serializers.FloatField(allow_null=True)
    samples_per_second = serializers.FloatField(allow_null=True)


class CurveSerializer(serializers.Serializer[Any]):
    """Memory and speed by batch size on one card."""

    gpu = serializers.CharField(allow_null=True, help_text="Name of the GPU; null until the run has a device.")
    capacity_bytes = serializers.IntegerField(allow_null=True)
    limit_bytes = serializers.IntegerField(allow_null=True, help_text="Memory that the run may use.")
    points = CurvePointSerializer(many=True)


class PointsSerializer(OriginSerializer):
    """The curves of a run."""

    run = serializers.IntegerField(source="run.pk")
    evidence = serializers.CharField(help_text="measured or estimated.")
    curves = CurveSerializer(many=True)


class CertificateSerializer(OriginSerializer):
    """The proof of a boundary: N trained, and N+1 did not."""

    run = serializers.IntegerField()
    certified = serializers.BooleanField(help_text="Whether N trained, and N+1 ran out of memory in a fresh process.")
    reason = serializers.CharField(help_text="What determines the boundary.")
    largest_batch_size = serializers.IntegerField(
        allow_null=True, help_text="N, the largest batch size that fits; 0: not even one sample fits."
    )
    soak_steps = serializers.IntegerField(help_text="Number of full training steps that N ran in a fresh process.")
    refused_batch_size = serializers.IntegerField(allow_null=True, help_text="N+1.")
    refusal = serializers.CharField(allow_null=True, help_text="Message of the error at N+1.")
    note = serializers.CharField(allow_null=True)
    fits = MeasurementSerializer(many=True, help_text="Probes of the largest batch size that fits, N.")
    refused = MeasurementSerializer(many=True, help_text="Probes of the next batch size, N+1, which failed.")


class RunParts(StrictViewSet):
    @extend_schema(responses=openapi_parameters.all_of("RunMeasurements", MeasurementSerializer, OriginSerializer))
    @action(detail=True, query_form=AttemptForm)
    def measurements(self, request: Request, pk: int) -> Response:
        """List the probes of one attempt, in their order; of a running run, those so far."""
        run = run_or_404(pk)
        number = self.parameters["attempt"] or run.attempt
        probes = Measurement.objects.filter(run=run, attempt=number).order_by("sequence")
        return _all(run, MeasurementSerializer(probes, many=True).data)

    @extend_schema(responses=openapi_parameters.all_of("RunAttempts", AttemptSerializer, OriginSerializer))
    @action(detail=True)
    def attempts(self, request: Request, pk: int) -> Response:
        """List the executions of the run by workers, with their outcome, oldest first."""
        run = run_or_404(pk)
        attempts = Attempt.objects.filter(run=run).select_related("device__host").order_by("number")
        return _all(run, AttemptSerializer(attempts, many=True).data)

    @extend_schema(parameters=[openapi_parameters.RETRY_AFTER], responses=EventsSerializer)
    @action(detail=True, query_form=EventsForm)
    def events(self, request: Request, pk: int) -> Response:
        """List log lines after a sequence number, over all attempts, with the run's state and phase.

        No more lines follow when `is_over` is true and `last_sequence` equals the requested `after`.
        """
        after, limit = self.parameters["after"], self.parameters["limit"]
        # the state is read first: if the run is over by then, the lines read after it are complete
        run = run_or_404(pk)
        lines = list(RunLog.objects.filter(run=run, pk__gt=after).order_by("pk")[:limit])
        if lines:
            last_sequence = lines[-1].pk
        else:  # the requested one, if it is one of this run's
            last_sequence = min(after, RunLog.objects.filter(run=run).aggregate(last=Max("pk"))["last"] or 0)
        events = {"events": EventSerializer(lines, many=True).data, "last_sequence": last_sequence}
        return Response({**StateMembers(run).data, **events}, headers=poll_again(run))

    @extend_schema(responses=PointsSerializer)
    @action(detail=True)
    def points(self, request: Request, pk: int) -> Response:
        """List one point for each batch size, ascending, in bytes and seconds. An estimate has a curve for each card.

        Of a size with several probes the latest counts, but not a long run under other conditions.
        """
        run = run_or_404(pk)
        kind = BY_KIND[run.kind]
        payload = {"run": run, "evidence": kind.evidence, "curves": kind.curves(run)}
        return Response(PointsSerializer(payload).data, headers=poll_again(run))

    @extend_schema(responses={200: RESULT})
    @action(detail=True)
    def result(self, request: Request, pk: int) -> Response:
        """Return the engine's result, as `python -m engine --json` prints it, with the origin of the run.

        404 if there is none or none yet.
        """
        run = run_or_404(pk)
        return Response({**_result(run), **origin_members(run)})

    @extend_schema(responses=CertificateSerializer)
    @action(detail=True)
    def certificate(self, request: Request, pk: int) -> Response:
        """Return the probes of N and N+1. 404 without a result, and for runs that prove no batch size."""
        run = run_or_404(pk)
        if not run.is_search:
            kind = run.get_kind_display().lower()
            article = "an" if kind[0] in "aeiou" else "a"
            refusal = f"Run {pk} is {article} {kind}: it proves no batch size."
            raise Problem(404, detail=refusal, code="no_certificate")
        return Response(CertificateSerializer(_certificate_of(run, _result(run)["boundary"])).data)


def _certificate_of(run: Run, boundary: Mapping[str, Any]) -> dict[str, Any]:
    fits, refused = boundary["largest_batch_size"], boundary["refused_batch_size"]
    probes = [probe for probe in Measurement.objects.of(run) if probe.batch_size in (fits, refused)]
    return {
        **{"soak_steps": 0, **boundary, "run": run.pk, **origin_members(run)},
        "fits": [probe for probe in probes if probe.batch_size == fits],
        "refused": [probe for probe in probes if probe.batch_size == refused],
    }


def _result(run: Run) -> dict[str, Any]:
    if run.result is None:
        raise Problem(
            404, detail=f"Run {run.pk} is {run.state}: it has no result.", code="no_result", headers=poll_again(run)
        )
    return dict(run.result)


def _all(run: Run, results: Any) -> Response:
    return Response({"run": run.pk, **origin_members(run), "results": results}, headers=poll_again(run))
