"""Requests of registered commands."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser, User

from analysis.api.kinds.measurement import measurement_body
from analysis.api.kinds.requests import Requests, placed, settings_in
from analysis.models import Run, RunKind
from analysis.runs.commands import command_spec, registered_commands
from engine.trainings.script.ranked_spec import request_in


class Command(Requests):
    """The address names the command, a body has its settings; ranks of a catalogue model are measurements."""

    elsewhere = "commands have settings of their own: start them at /api/v1/commands/"

    def submission_like(self, run: Run, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
        return command_submission(run.spec.get("name"), values, user)

    def kind_of_clone(self, run: Run) -> str:
        return RunKind.MEASUREMENT if run.spec.get("catalogue") else run.kind

    def body_of(self, run: Run) -> dict[str, Any]:
        if run.spec.get("catalogue"):
            priority = min(run.priority, Run.Priority.NORMAL)
            return measurement_body({**request_in(run.spec), "priority": priority}, run)
        known = registered_commands().get(run.spec.get("name") or "")
        offered = (*known.settings, "priority") if known else ("priority",)
        return {name: value for name, value in super().body_of(run).items() if name in offered and value is not None}


def command_submission(name: object, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
    """Read the arguments of `run_create` for a registered command. Raises SpecError."""
    return placed(command_spec(name, settings_in(values)), values, user)
