"""The page "Your scripts": how to run any script, and the registered commands with their runs and forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from analysis.http.page_requests import portal_address
from analysis.http.query_string import FlagField, StrictQueryForm, WholeNumberField, without_empty
from analysis.http.setting_fields import GroupedNumberField, setting_field, with_fields
from analysis.lists.runs.columns import OF_SCRIPTS
from analysis.models import Device, Run, State
from analysis.pages.field_groups import PlacedForm
from analysis.pages.form_choices import describe_limit, place_value
from analysis.pages.home.first_values import first_values
from analysis.pages.home.outlook import warn_of_load
from analysis.pages.home.views import devices_offered
from analysis.pages.run_table import run_table
from analysis.pages.script_runs import commands_offered, newest_script_runs, runs_of
from analysis.pages.spec_form import start_run
from analysis.presentation.run_rows import HistoryRow
from analysis.runs.commands import SETTABLE, RegisteredCommand
from analysis.runs.queue.placement import placement_of
from engine.describe.time_left import describe_left
from engine.errors import SpecError
from engine.settings.ranks.emulation import FEWEST_RANKS, MOST_RANKS
from engine.settings.spec import DEFAULTS, SETTINGS
from engine.settings.spec_checks import is_of_bytes
from engine.text.units import exact_bytes
from engine.trainings.script.spec import TuneSpec

_PROMINENT = ("device", "current_batch_size", "memory_limit_bytes")
_BOXES = {
    "whole_run": ("Whole run", "Train the largest rows of the data, then let the script evaluate and save."),
    "compare_speed": (
        "Compare speeds",
        "Train today’s size and others in turns. Without it, no size is recommended.",
    ),
}
_DEFAULTS = {each.name: DEFAULTS.get(each.name, each.default) for each in fields(TuneSpec)}


class CommandForm(PlacedForm):
    """A device, and one field for each setting that the command offers. Empty means: the default."""

    device = forms.ChoiceField(label="Device")

    def __init__(
        self,
        command: RegisteredCommand,
        data: Any = None,
        *,
        devices: Iterable[Device],
        initial: Mapping[str, Any] | None = None,
        suggested_limit: str | None = None,
    ) -> None:
        """Offer a command, with the settings of an earlier run or with the limit of a short first run on a CPU."""
        limit = {"memory_limit_bytes": suggested_limit} if suggested_limit else {}
        super().__init__(data, prefix=command.name, initial={**limit, **(initial or {})})
        self.command = command
        self.spec: TuneSpec | None = None
        self.offer_places(devices, count=command.devices)
        # boxes to tick stand last, where they leave no gap in the grid
        ordered = sorted(command.settings, key=lambda name: name in _BOXES)
        self.fields.update({name: _field(name) for name in ordered})
        if "memory_limit_bytes" in self.fields:
            self.fields["memory_limit_bytes"].help_text = describe_limit(suggested_limit)

    @property
    def offers_limit_only(self) -> bool:
        return "compare_speed" in self.command.settings

    @property
    def shown_fields(self) -> list[forms.BoundField]:
        return [field for field in self if field.name in _PROMINENT]

    @property
    def folded_fields(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in _PROMINENT]

    @property
    def more_is_open(self) -> bool:
        return any(field.errors for field in self.folded_fields)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        given = {name: value for name in self.command.settings if (value := cleaned.get(name)) not in (None, "")}
        if self.offers_limit_only and self.data.get("limit_only"):
            given["compare_speed"] = False
        try:
            self.spec = self.command.spec(given)
        except SpecError as error:
            self.add_spec_error(error)
        return cleaned

    def submission(self) -> dict[str, Any]:
        is_own_price = self.cleaned_data.get("price_per_hour_usd") is None
        return {"spec": self.spec, "place": self.place, "uses_device_price": is_own_price}


def values_of(run: Run) -> dict[str, Any]:
    """Read a stored run's settings as the first values of its command's form, to change one and run again."""
    known = {name: run.spec[name] for name in SETTABLE if run.spec.get(name) is not None}
    if run.uses_device_price:
        known.pop("price_per_hour_usd", None)
    known |= {name: exact_bytes(value) for name, value in known.items() if is_of_bytes(name)}
    place = placement_of(run)
    return known | ({"device": place_value(place)} if place.device or place.kind else {})


def _field(name: str) -> forms.Field:
    if name == "current_batch_size":
        return setting_field(name, label="Your batch size today", initial=_DEFAULTS[name])
    if name == "emulate_ranks":
        help_text = "One device stands in for ranks of so many: memory, no speed. Empty: the script’s own ranks."
        return GroupedNumberField(
            label="Emulated ranks",
            required=False,
            help_text=help_text,
            min_value=FEWEST_RANKS,
            max_value=MOST_RANKS,
        )
    if name in SETTINGS:
        return setting_field(name)
    label, help_text = _BOXES[name]
    is_on = True if _DEFAULTS[name] else None  # None: unticked says nothing
    return FlagField(label=label, required=False, help_text=help_text, initial=is_on)


def _card(form: CommandForm, rows: list[HistoryRow], load: str) -> dict[str, Any]:
    return {
        "form": form,
        "rows": rows,
        "table": run_table(rows, OF_SCRIPTS),
        "load": load,
        "full_took": _took(rows, compares_speed=True),
        "limit_took": _took(rows, compares_speed=False),
    }


def _took(rows: Iterable[HistoryRow], *, compares_speed: bool) -> str:
    """Write how long the newest such run took: ", about 6 min"; empty where none has finished."""
    of_this_kind = [row for row in rows if bool(row.run.spec.get("compare_speed")) is compares_speed]
    took = (row.took_seconds for row in of_this_kind if row.run.state == State.FINISHED)
    seconds = next(filter(None, took), None)
    return "" if seconds is None else f", {describe_left(seconds).removesuffix(' left')}"


@with_fields({"from": WholeNumberField(required=False, help_text="A run of a registered command.")})
class FromForm(StrictQueryForm):
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
        cards.append(_card(form, shown, load))
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
