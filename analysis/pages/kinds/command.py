"""The pages of a tuned training command or function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.http import QueryDict
from django.urls import reverse

from analysis.models import Run
from analysis.pages.kinds.measurement import Measurement
from analysis.pages.kinds.page import Page
from engine.describe.script_changes import script_changes
from engine.tune.catalogue.spec import request_in


class Command(Measurement):
    """A measurement's page; ranks of a catalogue model start from its form, registered commands from their own page."""

    views = "analysis.pages.commands.views"
    form_label = ""

    def result_page(self, run: Run, query: QueryDict, user: User | None = None) -> Page:
        """Return a measurement's page, with changes to try instead of estimated ones, which are not possible here."""
        template, context = super().result_page(run, query, user)
        if run.spec.get("catalogue"):  # it has settings to change, not a script's
            return template, context
        return template, context | {"script_changes": script_changes(context["result"].probes)}

    def form_settings(self, run: Run) -> Mapping[str, Any]:
        return request_in(run.spec) if run.spec.get("catalogue") else run.spec

    def change_address(self, run: Run) -> str:
        if run.spec.get("catalogue"):
            return super().change_address(run)
        return f"{reverse('analysis:commands')}?from={run.pk}#command-{run.model}"
