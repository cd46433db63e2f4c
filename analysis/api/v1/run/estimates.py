"""Estimates: runs whose figures come from the predictor. The same resource as runs, limited to this kind."""

from __future__ import annotations

from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.run_request import run_stored
from analysis.api.v1.base.strict_input import body_object
from analysis.api.v1.run.runs import OfKindList, list_described, started, stores_run
from analysis.http.problem_details import bad_field
from analysis.models import RunKind
from analysis.permissions import signed_in_user


@list_described(RunKind.ESTIMATE)
class EstimateList(OfKindList):
    """`GET` lists estimates; `POST` stores one. A single estimate is read at /api/v1/runs/."""

    kind = RunKind.ESTIMATE

    @stores_run("EstimateRequestRequest")
    def post(self, request: Request) -> Response:
        """Store and queue an estimate: `POST /api/v1/runs/` with kind estimate. It needs no device."""
        body = {"kind": self.kind.value, **body_object(request)}
        if body["kind"] != self.kind:
            raise bad_field("kind", "must be estimate; use /api/v1/runs/ for a measurement")
        return started(request, body, lambda: run_stored(body, signed_in_user(request)))


urlpatterns = [
    path("", EstimateList.as_view(), name="api-estimates"),
]
