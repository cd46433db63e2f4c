"""The form that starts a validation, and the latest validations."""

from __future__ import annotations

from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from analysis.http.query_string import without_empty
from analysis.models import Run
from analysis.pages.home.first_values import first_values
from analysis.pages.home.views import devices_offered
from analysis.pages.spec_form import start_run
from analysis.pages.validations.forms import ValidationForm, ValidationQuery, values_of
from analysis.presentation.run_rows import history_rows
from analysis.runs.queue.forecast import queue_positions

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
    context = {"form": form, "source": source, "rows": history_rows(latest, queue_positions(latest))}
    return render(request, "analysis/validations.html", context, status=status)


urlpatterns = [
    path("", validations, name="validations"),
    path("new/", validation_start, name="validation_start"),
]
