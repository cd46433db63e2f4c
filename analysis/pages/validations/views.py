"""The form that starts a validation, and the latest ones. `ValidationSpec` validates; the form shows its errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from analysis.http.query_string import StrictQueryForm, WholeNumberField, without_empty
from analysis.http.setting_fields import GroupedNumberField, described_field, offer, setting_field, with_fields
from analysis.lists.runs.columns import OF_VALIDATIONS
from analysis.models import Device, Run
from analysis.pages.field_groups import COMMON, TRAINING_NAMES, TRAINING_TOPICS, PlacedForm, Topic
from analysis.pages.form_choices import describe_input_sizes, models_by_task, place_value
from analysis.pages.home.first_values import REHEARSAL_MODEL, first_values
from analysis.pages.home.views import devices_offered
from analysis.pages.run_table import run_table
from analysis.pages.spec_form import start_run
from analysis.presentation.run_rows import history_rows
from analysis.runs.queue.forecast import queue_positions
from analysis.runs.queue.placement import placement_of
from engine.errors import SpecError
from engine.questions.validation.spec import BACKWARD, BATCH_SIZE, CHECKS, SETTINGS, ValidationSpec
from engine.settings.spec_checks import is_of_bytes
from engine.text.units import exact_bytes

_REFUSED = ("expandable_segments",)
_TOPICS = [replace(each, names=tuple(n for n in each.names if n not in _REFUSED)) for each in TRAINING_TOPICS]


@with_fields(
    {name: setting_field(name) for name in TRAINING_NAMES if name not in _REFUSED}, after="gradient_tolerance_percent"
)
class ValidationForm(PlacedForm):
    """Fields named as in ValidationSpec, so that an error of the spec finds its field. Empty means: the default."""

    check = forms.ChoiceField(
        label="Validate", choices=list(CHECKS.items()), widget=forms.RadioSelect, initial=BACKWARD, required=False
    )
    model = forms.ChoiceField(label="Model")
    device = forms.ChoiceField(label="Device")
    batch_size = described_field(
        SETTINGS["batch_size"], GroupedNumberField, help_text=SETTINGS["batch_size"].description
    )
    gradient_tolerance_percent = described_field(
        SETTINGS["gradient_tolerance"],
        forms.FloatField,
        label=f"{SETTINGS['gradient_tolerance'].label}, percent",
        min_value=0,
        max_value=100,
    )
    memory_limit_bytes = setting_field("memory_limit_bytes")
    # the limit that the page filled in by itself: it is for the model that stood beside it, and for no other
    suggested_limit = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)
    time_budget_seconds = setting_field(
        "time_budget_seconds", label="Time budget, seconds", help_text=SETTINGS["time_budget_seconds"].description
    )

    OPEN = ("device", "batch_size", *COMMON)
    TOPICS = (*_TOPICS, Topic("The check", ("gradient_tolerance_percent", "memory_limit_bytes", "time_budget_seconds")))
    FIELD_OF = {"gradient_tolerance": "gradient_tolerance_percent"}

    def __init__(self, data: Any = None, *, devices: Iterable[Device], **options: Any) -> None:
        super().__init__(data, **options)
        self.spec: ValidationSpec | None = None
        self.offer_places(devices)
        offer(self, "model", models_by_task())
        describe_input_sizes(self.fields)
        self.fields["model"].widget.attrs["data-search"] = "Search models"  # home.js puts a search box above it
        self.fields["batch_size"].widget.attrs["placeholder"] = str(BATCH_SIZE)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        names = [name for name in SETTINGS if name != "device"]
        given = {name: value for name in names if (value := cleaned.get(name)) not in (None, "")}
        if self._has_limit_of_another_model:
            given.pop("memory_limit_bytes", None)
        if (percent := cleaned.get("gradient_tolerance_percent")) is not None:
            given["gradient_tolerance"] = percent / 100
        try:
            self.spec = ValidationSpec.from_dict(given) if "model" in given else None
        except SpecError as error:
            self.add_spec_error(error)
        return cleaned

    @property
    def _has_limit_of_another_model(self) -> bool:
        suggested, model = (self.cleaned_data.get(name) for name in ("suggested_limit", "model"))
        return bool(suggested) and model != REHEARSAL_MODEL and self.cleaned_data.get("memory_limit_bytes") == suggested

    def submission(self) -> dict[str, Any]:
        return {"spec": self.spec, "place": self.place}


def values_of(run: Run) -> dict[str, Any]:
    known = {name: value for name, value in run.spec.items() if value is not None}
    known |= {name: exact_bytes(value) for name, value in known.items() if is_of_bytes(name)}
    if "gradient_tolerance" in known:
        known["gradient_tolerance_percent"] = f"{known['gradient_tolerance'] * 100:.6g}"
    return known | {"device": place_value(placement_of(run))}


@with_fields({"from": WholeNumberField(required=False)})
class ValidationQuery(StrictQueryForm):
    """The parameters of the page."""


LATEST = 20


@require_safe
def validations(request: HttpRequest) -> HttpResponse:
    query = ValidationQuery(without_empty(request.GET))
    for problem in query.problems:
        messages.error(request, f"{problem}.")
    source = None if query.problems else query.cleaned_data["from"]
    run = Run.objects.validating().filter(pk=source).defer("result").first() if source else None
    devices, _ = devices_offered(request)
    form = ValidationForm(devices=devices, initial=values_of(run) if run else first_values(devices))
    return _page(request, form, source=run, status=400 if query.problems else 200)


@require_POST
def validation_start(request: HttpRequest) -> HttpResponse:
    devices, _ = devices_offered(request)
    form = ValidationForm(request.POST, devices=devices)
    return start_run(request, form, partial(_page, request, form))


def _page(request: HttpRequest, form: ValidationForm, source: Run | None = None, status: int = 200) -> HttpResponse:
    latest = list(Run.objects.for_history().validating().defer("result", "memory_curve")[:LATEST])
    table = run_table(history_rows(latest, queue_positions(latest)), OF_VALIDATIONS)
    context = {"form": form, "source": source, "table": table}
    return render(request, "analysis/validations.html", context, status=status)


urlpatterns = [
    path("", validations, name="validations"),
    path("new/", validation_start, name="validation_start"),
]
