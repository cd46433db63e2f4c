"""Estimates: runs whose figures come from the predictor. The same resource as runs, limited to this kind."""

from __future__ import annotations

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.run_request import run_stored
from analysis.api.v1.base import openapi_parameters
from analysis.api.v1.base.serializers import RunDetailSerializer
from analysis.api.v1.base.strict_input import body_object
from analysis.api.v1.run.runs import OfKindList, list_described, started
from analysis.http.problem_details import bad_field
from analysis.models import RunKind
from analysis.permissions import signed_in_user


@list_described(RunKind.ESTIMATE)
class EstimateList(OfKindList):
    """`GET` lists estimates; `POST` stores one. A single estimate is read at /api/v1/runs/."""

    kind = RunKind.ESTIMATE

    @extend_schema(
        parameters=openapi_parameters.ACCEPTED,
        request=openapi_parameters.body("EstimateRequestRequest"),
        responses={202: RunDetailSerializer, **openapi_parameters.problems(409, 422)},
    )
    def post(self, request: Request) -> Response:
        """Store and queue an estimate: `POST /api/v1/runs/` with kind estimate. It needs no device."""
        body = {"kind": self.kind.value, **body_object(request)}
        if body["kind"] != self.kind:
            raise bad_field("kind", "must be estimate; use /api/v1/runs/ for a measurement")
        return started(request, body, lambda: run_stored(body, signed_in_user(request)))


urlpatterns = [
    path("", EstimateList.as_view(), name="api-estimates"),
]
