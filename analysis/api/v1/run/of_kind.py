"""Runs that have addresses of their own: estimates, validations, and runs of the commands registered on this host.

They are the same resource as runs, limited to their kind: a single one is read at /api/v1/runs/.
"""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.kinds.command import command_submission
from analysis.api.kinds.validation import Validation
from analysis.api.run_bodies import run_stored
from analysis.api.v1.base import openapi_parameters
from analysis.api.v1.base.strict_input import body_object
from analysis.api.v1.base.views import StrictView
from analysis.api.v1.run.runs import OfKindList, list_described, started, stores_run
from analysis.http.problem_details import bad_field
from analysis.models import RunKind
from analysis.permissions import signed_in_user
from analysis.runs.commands import RegisteredCommand, registered_commands
from analysis.runs.services import run_create
from engine.text.masking import masked


@list_described(RunKind.ESTIMATE)
class EstimateList(OfKindList):
    kind = RunKind.ESTIMATE

    @stores_run("EstimateRequestRequest")
    def post(self, request: Request) -> Response:
        """Store and queue an estimate: `POST /api/v1/runs/` with kind estimate. It needs no device."""
        body = {"kind": self.kind.value, **body_object(request)}
        if body["kind"] != self.kind:
            raise bad_field("kind", "must be estimate; use /api/v1/runs/ for a measurement")
        return started(request, body, lambda: run_stored(body, signed_in_user(request)))


@list_described(RunKind.VALIDATION)
class ValidationList(OfKindList):
    kind = RunKind.VALIDATION

    @stores_run("ValidationRequestRequest")
    def post(self, request: Request) -> Response:
        """Store and queue a validation of the backward pass or of torch.compile. Poll its Location until it is over."""
        body, user = body_object(request), signed_in_user(request)
        return started(request, body, lambda: run_create(**Validation().submission(body, user)))


class CommandSerializer(serializers.Serializer[Any]):
    """A registered command. What looks like a secret on its command line is hidden."""

    name = serializers.CharField()
    description = serializers.CharField()
    command = serializers.SerializerMethodField()
    function = serializers.CharField(
        allow_null=True, help_text="The registered function, package.module:function. The command is built from it."
    )
    batch = serializers.CharField(help_text="How the batch size gets into the command.")
    devices = serializers.IntegerField(help_text="Devices of one host that a run of it gets together, all or none.")
    settings = serializers.ListField(child=serializers.CharField(), help_text="What a run of it may set.")

    def get_command(self, command: RegisteredCommand) -> list[str]:
        return masked(command.command)


class Commands(StrictView):
    @extend_schema(responses=openapi_parameters.listed("CommandList", CommandSerializer))
    def get(self, request: Request) -> Response:
        """List the training commands that the administrator registered on this host."""
        return Response({"results": CommandSerializer([*registered_commands().values()], many=True).data})


class CommandRuns(StrictView):
    throttle_scope = "create"

    @stores_run("CommandRunRequestRequest", operation_id="commands_run")
    def post(self, request: Request, name: str) -> Response:
        """Queue a run that finds the command's largest batch size. Poll its Location until it is over."""
        if name not in registered_commands():
            raise Http404
        body, user = body_object(request), signed_in_user(request)
        return started(request, body, lambda: run_create(**command_submission(name, body, user)))
