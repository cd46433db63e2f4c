"""The pages of a validation."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import QueryDict
from django.urls import reverse

from analysis.models import Run
from analysis.pages.kinds.page import KindPages, Page
from analysis.presentation.kinds.validation import validation_shown
from analysis.presentation.unreadable import read_stored
from engine.questions.documents.validated import Validated


class Validation(KindPages):
    views = "analysis.pages.validations.views"
    help_text = "Check the backward pass and torch.compile on your device."

    def change_address(self, run: Run) -> str:
        return f"{reverse('analysis:validations')}?from={run.pk}"

    def result_page(self, run: Run, query: QueryDict, user: User | None = None) -> Page:
        found = read_stored(Validated.from_dict, run.result)
        return "analysis/run/validation.html", validation_shown(found)
