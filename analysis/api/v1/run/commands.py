"""The training commands that are registered on this host, and runs of them."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.kinds.command import command_submission
from analysis.api.v1.base import openapi_parameters
from analysis.api.v1.base.strict_input import body_object
from analysis.api.v1.base.strict_view import StrictView
from analysis.api.v1.run.runs import started, stores_run
from analysis.permissions import signed_in_user
from analysis.runs.commands import RegisteredCommand, registered_commands
from analysis.runs.services import run_create
from engine.text.masking import masked


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


urlpatterns = [
    path("", Commands.as_view(), name="api-commands"),
    path("<str:name>/runs/", CommandRuns.as_view(), name="api-command-runs"),
]
