"""Validations: runs that check the backward pass or torch.compile. The same resource as runs, limited to this kind."""

from __future__ import annotations

from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.kinds.validation import Validation
from analysis.api.v1.base.strict_input import body_object
from analysis.api.v1.run.runs import OfKindList, list_described, started, stores_run
from analysis.models import RunKind
from analysis.permissions import signed_in_user
from analysis.runs.services import run_create


@list_described(RunKind.VALIDATION)
class ValidationList(OfKindList):
    """`GET` lists validations; `POST` stores one. A single validation is read at /api/v1/runs/."""

    kind = RunKind.VALIDATION

    @stores_run("ValidationRequestRequest")
    def post(self, request: Request) -> Response:
        """Store and queue a validation of the backward pass or of torch.compile. Poll its Location until it is over."""
        body, user = body_object(request), signed_in_user(request)
        return started(request, body, lambda: run_create(**Validation().submission(body, user)))


urlpatterns = [
    path("", ValidationList.as_view(), name="api-validations"),
]
