"""The page "Your scripts": how to run any script, and the registered commands with their runs and forms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from analysis.http.page_requests import portal_address
from analysis.http.query_string import StrictQueryForm, WholeNumberField, without_empty
from analysis.http.setting_fields import with_fields
from analysis.models import Run, State
from analysis.pages.commands.forms import CommandForm, values_of
from analysis.pages.home.first_values import first_values
from analysis.pages.home.outlook import warn_of_load
from analysis.pages.home.views import devices_offered
from analysis.pages.script_runs import ScriptRun, commands_offered, newest_script_runs, runs_of
from analysis.pages.spec_form import start_run
from engine.time_left import describe_left


@dataclass(frozen=True, slots=True)
class ScriptCard:
    """A registered command with its form, and its newest runs."""

    form: CommandForm
    runs: list[ScriptRun]
    load: str

    @property
    def full_took(self) -> str:
        """Write how long the newest run took: "about 6 min"; empty where none has finished."""
        return self._took(compares_speed=True)

    @property
    def limit_took(self) -> str:
        return self._took(compares_speed=False)

    def _took(self, *, compares_speed: bool) -> str:
        rows = [each.row for each in self.runs if bool(each.run.spec.get("compare_speed")) is compares_speed]
        seconds = next((row.took_seconds for row in rows if row.run.state == State.FINISHED and row.took_seconds), None)
        return "" if seconds is None else f", {describe_left(seconds).removesuffix(' left')}"


@with_fields({"from": WholeNumberField(required=False, help_text="A run of a registered command.")})
class FromForm(StrictQueryForm):
    """The run whose settings fill in its command's form."""

    command = forms.CharField(required=False, max_length=40, help_text="The command that is shown first.")


@require_safe
def commands(request: HttpRequest) -> HttpResponse:
    """List the commands of this host; `?from=<run>` fills in the form of that run's command with its settings."""
    query = FromForm(without_empty(request.GET))
    for problem in query.problems:
        messages.error(request, f"{problem}.")
    if query.problems:
        return _page(request, status=400)
    number = query.cleaned_data["from"]
    run = Run.objects.of_own_scripts().filter(pk=number).defer("result").first() if number else None
    if run is not None and run.model not in commands_offered():
        messages.error(request, f"{run.model} is not registered on this host, so run {run.pk} cannot be changed here.")
        run = None
    return _page(request, source=run, first=run.model if run else query.cleaned_data["command"])


@require_POST
def command_start(request: HttpRequest, name: str) -> HttpResponse:
    if (command := commands_offered().get(name)) is None:
        raise Http404
    devices, _ = devices_offered(request)
    form = CommandForm(command, data=request.POST, devices=devices)
    return start_run(request, form, partial(_page, request, form, first=name))


def _page(
    request: HttpRequest,
    wrong: CommandForm | None = None,
    *,
    source: Run | None = None,
    first: str = "",
    status: int = 200,
) -> HttpResponse:
    devices, _ = devices_offered(request)
    cards, load = [], warn_of_load(devices)
    for command in sorted(commands_offered().values(), key=lambda each: each.name != first):
        shown = runs_of(command)
        if wrong is not None and wrong.command == command:
            form = wrong
        elif source is not None and source.model == command.name:
            form = CommandForm(command, devices=devices, initial=values_of(source))
        elif shown:  # with the settings of its last run
            form = CommandForm(command, devices=devices, initial=values_of(shown[0].run))
        else:
            form = CommandForm(
                command, devices=devices, suggested_limit=first_values(devices).get("memory_limit_bytes")
            )
        cards.append(ScriptCard(form, shown, load))
    context: dict[str, Any] = {
        "cards": cards,
        "source": source,
        "newest": newest_script_runs(),
        "portal_address": portal_address(request),
    }
    return render(request, "analysis/commands.html", context, status=status)


urlpatterns = [
    path("", commands, name="commands"),
    path("<str:name>/", command_start, name="command_start"),
]
