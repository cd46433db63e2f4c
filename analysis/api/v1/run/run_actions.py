"""Actions on one run: cancel, retry, clone, restore; and measuring what an estimate found to change."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.run_bodies import run_cloned
from analysis.api.v1.base import openapi_parameters
from analysis.api.v1.base.serializers import RunDetailSerializer, RunSerializer
from analysis.api.v1.base.strict_input import StrictBody, StrictText, body_object, validated
from analysis.api.v1.base.views import StrictViewSet
from analysis.api.v1.run.runs import (
    accepted,
    not_yours,
    refuse_unless_done,
    run_or_404,
    started,
    stores_run,
    summary_of,
)
from analysis.http.problem_details import Problem
from analysis.models import Run
from analysis.permissions import signed_in_user
from analysis.runs import services
from analysis.runs.earlier.what_to_change import MEASURED_MAX
from analysis.runs.kinds import rules_of
from analysis.runs.queue.placement import placement_find


class MeasureChangesRequestSerializer(StrictBody):
    """Variants of an estimate to measure, and where."""

    variants = serializers.ListField(
        child=StrictText(),
        min_length=1,
        max_length=MEASURED_MAX,
        help_text="Labels of `what_to_change.variants` in the estimate's result.",
    )
    device = StrictText(required=False, help_text="As in RunRequest. Default: auto.")
    device_class = StrictText(required=False, allow_blank=True, help_text="Part of the GPU's name, such as A100.")


_MEASURED: Any = inline_serializer("MeasureChangesAnswer", {"runs": RunSerializer(many=True)})


class RunActions(StrictViewSet):
    @extend_schema(
        request=None,
        parameters=[openapi_parameters.LOCATION, openapi_parameters.RETRY_AFTER],
        responses={200: RunDetailSerializer, 202: RunDetailSerializer},
    )
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: int) -> Response:
        """Cancel a waiting run at once (202), or request that a running one stops (202); one that is over stays (200).

        People cancel their own runs; GPU managers, any run.
        """
        run_or_404(pk)
        _refuse_a_body(request)
        answer = services.runs_cancel_by(run_ids={pk}, by=signed_in_user(request))
        if answer.not_allowed:
            raise not_yours()
        return accepted(run_or_404(pk), request, status=202 if answer.done else 200)

    @stores_run()
    @action(detail=True, methods=["post"], throttle_scope="create")
    def retry(self, request: Request, pk: int) -> Response:
        """Store a new run with the same spec and placement, owned by the requester. The run must be over."""
        run = run_or_404(pk)
        _refuse_a_body(request)
        if not run.is_over:
            raise Problem(409, detail=f"Run {pk} is not over yet.", code="state")
        _refuse_again(run)
        user = signed_in_user(request)
        return started(request, {}, lambda: services.run_again(run=run, requested_by=user))

    @stores_run("RunCloneRequestRequest")
    @action(detail=True, methods=["post"], throttle_scope="create")
    def clone(self, request: Request, pk: int) -> Response:
        """Store a new run with the spec of this one, changed by the body.

        This can turn an estimate into a measurement: `{"kind": "measurement"}`.
        """
        run, body = run_or_404(pk), body_object(request)
        _refuse_again(run)
        return started(request, body, lambda: run_cloned(run, body, signed_in_user(request)))

    @extend_schema(
        request=None,
        parameters=[openapi_parameters.LOCATION],
        responses={200: RunDetailSerializer, **openapi_parameters.problems(409)},
    )
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, pk: int) -> Response:
        """Restore a deleted run of one's own within 30 days; GPU managers, any run."""
        run_or_404(pk, Run.all_runs)
        _refuse_a_body(request)
        refuse_unless_done(services.runs_restore(run_ids={pk}, by=signed_in_user(request)))
        return accepted(run_or_404(pk), request, status=200)

    @extend_schema(
        tags=["estimates"],
        request=MeasureChangesRequestSerializer,
        responses={202: _MEASURED, **openapi_parameters.problems(409, 422)},
    )
    @action(detail=True, methods=["post"], url_path="measure-changes", throttle_scope="create")
    def measure_changes(self, request: Request, pk: int) -> Response:
        """Queue a measurement of each of these variants: all of them, or none with the reason."""
        run, user = run_or_404(pk), signed_in_user(request)
        body = validated(MeasureChangesRequestSerializer, body_object(request))
        place = placement_find(body.get("device", "auto"), body.get("device_class", ""), user)
        queued = services.changes_measure(run=run, labels=body["variants"], place=place, requested_by=user)
        return Response({"runs": [summary_of(run_or_404(each.pk)) for each in queued]}, status=202)


def _refuse_again(run: Run) -> None:
    if reason := rules_of(run).not_again(run):
        raise Problem(409, detail=f"run: {reason}", code="state")


def _refuse_a_body(request: Request) -> None:
    body: Any = request.data
    if body:
        raise Problem(400, detail="This action takes no body; to change settings, use clone/.", code="unknown")
