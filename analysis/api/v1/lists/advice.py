"""The advice for a run: exact global batch, learning rate, code to paste."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.v1.base.serializers import OriginSerializer
from analysis.api.v1.base.strict_view import StrictView
from analysis.api.v1.run.runs import run_or_404
from analysis.http.problem_details import Problem, bad_parameter
from analysis.presentation.advice_query import AdviceForm, advice_of
from analysis.presentation.origin import origin_members
from engine.errors import SpecError

_PARAMETERS = {"global_batch_size": "global_batch", "devices": "devices", "gpu": "gpu"}


class PairSerializer(serializers.Serializer[Any]):
    """One way to make the global batch."""

    micro_batch_size = serializers.IntegerField()
    accumulation_steps = serializers.IntegerField()
    fits = serializers.BooleanField(allow_null=True, help_text="null: accumulation needs memory that was not measured.")
    samples_per_second = serializers.FloatField(allow_null=True, help_text="Measured speed of the micro-batch.")
    samples_per_second_low = serializers.FloatField(allow_null=True)
    samples_per_second_high = serializers.FloatField(allow_null=True)


class GlobalBatchSerializer(serializers.Serializer[Any]):
    """The pairs of a global batch, largest micro-batch first."""

    size = serializers.IntegerField()
    devices = serializers.IntegerField()
    pairs = PairSerializer(many=True)
    nearest = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Nearest global batches with a sensible pair, where this one has none.",
    )


class ScalingRuleSerializer(serializers.Serializer[Any]):
    """A rule in use for the learning rate; it is named and never applied."""

    name = serializers.CharField()
    factor = serializers.FloatField()
    usual_with = serializers.CharField()


class PaperSerializer(serializers.Serializer[Any]):
    """A published paper."""

    citation = serializers.CharField()
    url = serializers.URLField()


class SnippetSerializer(serializers.Serializer[Any]):
    """Code to paste."""

    id = serializers.CharField()
    title = serializers.CharField()
    language = serializers.CharField(help_text="python or json.")
    text = serializers.CharField()
    python = serializers.CharField(help_text="Code that goes with a configuration; else empty.")
    note = serializers.CharField()


class LibraryLeftOutSerializer(serializers.Serializer[Any]):
    """A library without a snippet for this training."""

    title = serializers.CharField()
    reason = serializers.CharField()


class AdviceSerializer(OriginSerializer):
    """What to do with the result of a run."""

    kind = serializers.CharField(help_text="measured or estimated.")
    recommended_batch_size = serializers.IntegerField(
        allow_null=True, help_text="By compared speeds; null where they do not say, and for an estimate."
    )
    with_margin_batch_size = serializers.IntegerField(
        allow_null=True, help_text="Without a recommended size: the largest with an estimate's margin, or the reserve."
    )
    today_global_batch_size = serializers.IntegerField()
    is_wanted = serializers.BooleanField(help_text="Whether `global_batch` was given.")
    global_batch = GlobalBatchSerializer()
    chosen = PairSerializer(allow_null=True, help_text="The pair of the code.")
    learning_rate_rules = ScalingRuleSerializer(many=True)
    samples_needed = serializers.CharField()
    papers = PaperSerializer(many=True)
    snippets = SnippetSerializer(many=True)
    left_out = LibraryLeftOutSerializer(many=True)
    not_in_code = serializers.ListField(
        child=serializers.CharField(), help_text="Settings of the training that the code leaves to the reader."
    )


class RunAdvice(StrictView):
    """What to paste after a run."""

    query_form = AdviceForm

    @extend_schema(responses=AdviceSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Return pairs that keep a global batch exactly, the rules for the learning rate, and code to paste.

        404 where the run has no result, or no size that keeps the reserve.
        """
        run = run_or_404(pk)
        if not run.result:
            raise Problem(404, detail=f"Run {pk} is {run.state}: advice needs its result.", code="no_advice")
        try:
            advice = advice_of(run, self.query)
        except SpecError as error:
            if error.field in _PARAMETERS:
                raise bad_parameter(_PARAMETERS[error.field], str(error).partition(": ")[2]) from error
            raise Problem(404, detail=f"Run {pk} is {run.state}: {error}.", code="no_advice") from error
        return Response(AdviceSerializer({**advice.to_dict(), **origin_members(run)}).data)
