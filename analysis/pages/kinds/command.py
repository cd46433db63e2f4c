"""The pages of a tuned training command or function."""

from __future__ import annotations

from django.urls import reverse

from analysis.models import Run
from analysis.pages.kinds.measurement import Measurement


class Command(Measurement):
    """Its result has the page of a measurement; only a registered command can be started, on a page of its own."""

    views = "analysis.pages.commands.views"
    form_label = ""

    def change_address(self, run: Run) -> str:
        return f"{reverse('analysis:commands')}?from={run.pk}#command-{run.model}"
