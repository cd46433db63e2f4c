"""The pages of a tuned training command or function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import QueryDict
from django.urls import reverse

from analysis.models import Run
from analysis.pages.kinds.measurement import Measurement
from analysis.pages.kinds.page import Page
from engine.describe.script_changes import script_changes

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class Command(Measurement):
    """Its result has the page of a measurement; only a registered command can be started, on a page of its own."""

    views = "analysis.pages.commands.views"
    form_label = ""

    def result_page(self, run: Run, query: QueryDict, user: User | None = None) -> Page:
        """Return the page of a measurement, with changes that nobody can estimate instead of those to estimate."""
        template, context = super().result_page(run, query, user)
        return template, context | {"script_changes": script_changes(context["result"].probes)}

    def change_address(self, run: Run) -> str:
        return f"{reverse('analysis:commands')}?from={run.pk}#command-{run.model}"
