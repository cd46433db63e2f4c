"""The commands that the administrator registered, each with the form that starts it."""

from __future__ import annotations

from functools import partial

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from analysis.pages.commands.forms import CommandForm
from analysis.pages.home.views import devices_offered
from analysis.pages.spec_form import start_run
from analysis.runs.commands import registered_commands


@require_safe
def commands(request: HttpRequest) -> HttpResponse:
    """List the commands of this host."""
    return _page(request)


@require_POST
def command_start(request: HttpRequest, name: str) -> HttpResponse:
    """Queue a run of a command, or show its form again with the errors."""
    if (command := registered_commands().get(name)) is None:
        raise Http404
    devices, _ = devices_offered(request)
    form = CommandForm(command, data=request.POST, devices=devices)
    return start_run(request, form, partial(_page, request, form))


def _page(request: HttpRequest, wrong: CommandForm | None = None, status: int = 200) -> HttpResponse:
    devices, _ = devices_offered(request)
    forms = [
        wrong if wrong is not None and wrong.command == each else CommandForm(each, devices=devices)
        for each in registered_commands().values()
    ]
    return render(request, "analysis/commands.html", {"forms": forms}, status=status)
