"""Validations: runs that check the backward pass or torch.compile. The same resource as runs, limited to this kind."""

from __future__ import annotations

from django.http import QueryDict
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.run_request import validation_submission
from analysis.api.v1 import openapi_parameters
from analysis.api.v1.idempotency import run_once
from analysis.api.v1.runs import RunListFilter, accepted, page_answered, requested_runs
from analysis.api.v1.serializers import RunDetailSerializer, RunSerializer
from analysis.api.v1.strict_input import body_object
from analysis.api.v1.strict_view import StrictView
from analysis.models import Run
from analysis.pages.history.query import HistoryQuery
from analysis.permissions import signed_in_user
from analysis.runs.services import run_create

_KIND = "kind"


class ValidationFilter(RunListFilter):
    """The filters of the list of runs, without the kind."""

    kind = None  # type: ignore[assignment]  # so a filter set leaves one of its base out


class ValidationList(StrictView):
    """`GET` lists validations; `POST` stores one. A single validation is read at /api/v1/runs/."""

    throttle_scope = "create"

    def read_query(self, query: QueryDict) -> HistoryQuery:
        requested_runs(query, ValidationFilter)
        validations = query.copy()
        validations[_KIND] = Run.Kind.VALIDATION.value
        return requested_runs(validations, RunListFilter)

    @extend_schema(
        tags=["validations"],
        operation_id="validations_list",
        parameters=openapi_parameters.run_parameters(ValidationFilter),
        responses=openapi_parameters.page_of("ValidationPage", RunSerializer),
    )
    def get(self, request: Request) -> Response:
        """List runs of kind validation, filtered and sorted like runs."""
        return page_answered(self.query, request)

    @extend_schema(
        tags=["validations"],
        operation_id="validations_create",
        parameters=openapi_parameters.ACCEPTED,
        request=openapi_parameters.validation_body("ValidationRequest"),
        responses={202: RunDetailSerializer, **openapi_parameters.problems(409, 422)},
    )
    def post(self, request: Request) -> Response:
        """Store and queue a validation of the backward pass or of torch.compile. Poll its Location until it is over."""
        body, user = body_object(request), signed_in_user(request)
        run, is_replay = run_once(request, body, lambda: run_create(**validation_submission(body, user)))
        return accepted(run, request, is_replay=is_replay)
