"""Estimates: runs whose figures come from the predictor. The same resource as runs, limited to this kind."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.run_request import run_stored
from analysis.api.v1 import openapi_parameters
from analysis.api.v1.idempotency import run_once
from analysis.api.v1.runs import FILTERS, RunPages, accepted, page_answered, requested_runs
from analysis.api.v1.serializers import RunDetailSerializer, RunSerializer
from analysis.api.v1.strict_input import body_object
from analysis.api.v1.strict_view import StrictView
from analysis.http.problem_details import bad_field
from analysis.models import Run
from analysis.pages.history.query import parse_query
from analysis.permissions import signed_in_user

_ESTIMATE = Run.Kind.ESTIMATE.value
_KIND = "kind"


class EstimateList(StrictView):
    """`GET` lists estimates; `POST` stores one. A single estimate is read at /api/v1/runs/."""

    pagination_class = RunPages
    query_parameters = (*(name for name in FILTERS if name != _KIND), *RunPages.query_parameters)
    repeatable_parameters = ("state",)
    throttle_scope = "create"

    @extend_schema(
        tags=["estimates"],
        operation_id="estimates_list",
        parameters=[
            *(each for each in openapi_parameters.run_filters() if each.name != _KIND),
            *openapi_parameters.page_parameters(),
        ],
        responses=openapi_parameters.page_of("EstimatePage", RunSerializer),
    )
    def get(self, request: Request) -> Response:
        """List runs of kind estimate, filtered and sorted like runs."""
        data = requested_runs(request).data.copy()
        data[_KIND] = _ESTIMATE
        return page_answered(parse_query(data), request)

    @extend_schema(
        tags=["estimates"],
        operation_id="estimates_create",
        parameters=openapi_parameters.ACCEPTED,
        request=openapi_parameters.run_body("EstimateRequest"),
        responses={202: RunDetailSerializer, **openapi_parameters.problems(409, 422)},
    )
    def post(self, request: Request) -> Response:
        """Store and queue an estimate: `POST /api/v1/runs/` with kind estimate. It needs no device."""
        body = {_KIND: _ESTIMATE, **body_object(request)}
        if body[_KIND] != _ESTIMATE:
            raise bad_field(_KIND, "must be estimate; use /api/v1/runs/ for a measurement")
        run, is_replay = run_once(request, body, lambda: run_stored(body, signed_in_user(request)))
        return accepted(run, request, is_replay=is_replay)
