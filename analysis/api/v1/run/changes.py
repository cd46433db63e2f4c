"""Measuring what an estimate found to change: several runs from one request."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.v1.base import openapi_parameters
from analysis.api.v1.base.serializers import RunSerializer
from analysis.api.v1.base.strict_input import body_object
from analysis.api.v1.base.strict_view import StrictView
from analysis.api.v1.run.runs import run_or_404, summary_of
from analysis.http.problem_details import bad_field
from analysis.permissions import signed_in_user
from analysis.runs import services
from analysis.runs.earlier.what_to_change import MEASURED_MAX
from analysis.runs.queue.placement import placement_find

_KEYS = ("variants", "device", "device_class")
_BODY: Any = inline_serializer(
    "MeasureChangesRequest",
    {
        "variants": serializers.ListField(
            child=serializers.CharField(),
            min_length=1,
            max_length=MEASURED_MAX,
            help_text="Labels of `what_to_change.variants` in the estimate's result.",
        ),
        "device": serializers.CharField(required=False, help_text="As in RunRequest. Default: auto."),
        "device_class": serializers.CharField(required=False, help_text="Part of the GPU's name, such as A100."),
    },
)
_ANSWER: Any = inline_serializer("MeasureChangesAnswer", {"runs": RunSerializer(many=True)})


class MeasureChanges(StrictView):
    """Measure variants of an estimate with `what_to_change`."""

    throttle_scope = "create"

    @extend_schema(
        tags=["estimates"], request=_BODY, responses={202: _ANSWER, **openapi_parameters.problems(409, 413, 415, 422)}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Queue a measurement of each of these variants: all of them, or none with the reason."""
        run, body, user = run_or_404(pk), body_object(request), signed_in_user(request)
        for name in body:
            if name not in _KEYS:
                raise bad_field(name[:80], f"unknown key; allowed are {', '.join(_KEYS)}")
        labels = body.get("variants")
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise bad_field("variants", "must be a list of labels")
        place = placement_find(_text(body, "device", "auto"), _text(body, "device_class", ""), user)
        started = services.changes_measure(run=run, labels=labels, place=place, requested_by=user)
        rows = [summary_of(run_or_404(each.pk)) for each in started]
        return Response({"runs": rows}, status=202)


def _text(body: dict[str, Any], name: str, default: str) -> str:
    value = body.get(name, default)
    if not isinstance(value, str):
        raise bad_field(name, "must be text")
    return value
