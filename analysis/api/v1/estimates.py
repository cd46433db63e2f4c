"""Estimates: runs whose figures come from the predictor. The same resource as runs, limited to this kind."""

from __future__ import annotations

from django.http import QueryDict
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.run_request import run_stored
from analysis.api.v1 import openapi_parameters
from analysis.api.v1.idempotency import run_once
from analysis.api.v1.runs import RunListFilter, accepted, page_answered, requested_runs
from analysis.api.v1.serializers import RunDetailSerializer, RunSerializer
from analysis.api.v1.strict_input import body_object
from analysis.api.v1.strict_view import StrictView
from analysis.http.problem_details import bad_field
from analysis.models import Run
from analysis.pages.history.query import HistoryQuery
from analysis.permissions import signed_in_user

_ESTIMATE = Run.Kind.ESTIMATE.value
_KIND = "kind"


class EstimateFilter(RunListFilter):
    """The filters of the list of runs, without the kind."""

    kind = None  # type: ignore[assignment]  # so a filter set leaves one of its base out


class EstimateList(StrictView):
    """`GET` lists estimates; `POST` stores one. A single estimate is read at /api/v1/runs/."""

    throttle_scope = "create"

    def read_query(self, query: QueryDict) -> HistoryQuery:
        requested_runs(query, EstimateFilter)
        estimates = query.copy()
        estimates[_KIND] = _ESTIMATE
        return requested_runs(estimates, RunListFilter)

    @extend_schema(
        tags=["estimates"],
        operation_id="estimates_list",
        parameters=openapi_parameters.run_parameters(EstimateFilter),
        responses=openapi_parameters.page_of("EstimatePage", RunSerializer),
    )
    def get(self, request: Request) -> Response:
        """List runs of kind estimate, filtered and sorted like runs."""
        return page_answered(self.query, request)

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
