"""The pages of a validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import QueryDict
from django.urls import reverse

from analysis.models import Run
from analysis.pages.kinds.measurement import environment_rows
from analysis.pages.kinds.page import KindPages, Page
from analysis.presentation.stored.validation import read_validation

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class Validation(KindPages):
    """It is started on a page of its own, and its result is checks with a verdict."""

    views = "analysis.pages.validations.views"
    help_text = "Check the backward pass and torch.compile on your device."

    def change_address(self, run: Run) -> str:
        return f"{reverse('analysis:validations')}?from={run.pk}"

    def result_page(self, run: Run, query: QueryDict, user: User | None = None) -> Page:
        validation = read_validation(run.result or {})
        return "analysis/run/validation.html", {"validation": validation, "environment": environment_rows(validation)}
