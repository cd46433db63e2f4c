"""The protocol of a kind of run on pages: all behaviour that depends on the kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from django.contrib.auth.models import User
from django.http import QueryDict
from django.urls import reverse

from analysis.models import Run, RunKind

Page = tuple[str, dict[str, Any]]
"""A template and its context."""


class KindPages(Protocol):
    """The pages of a kind of run. What is not overridden holds for a run on a device."""

    views: str = ""
    """The module of the pages that start it, with their addresses below `/validations/`; empty: the start page does."""
    help_text: str = ""
    """What these pages are for; with it, they stand below the help page. The first is named `validations`."""
    form_label: str = ""
    """How the form of the start page offers it; empty where that form does not start it."""
    form_leaves_out: tuple[str, ...] = ("gpu", "frontier", "largest")
    """Fields of that form without use for this kind: hidden by the browser, and what is sent in them is not used."""
    form_css_class: str = "only-measure"
    """The class of what stands in that form for such runs alone."""
    form_kind: RunKind = RunKind.MEASUREMENT
    """What that form offers to start with the settings of such a run."""

    def form_settings(self, run: Run) -> Mapping[str, Any]:
        settings: dict[str, Any] = run.spec
        return settings

    def change_address(self, run: Run) -> str:
        return f"{reverse('home')}?from={run.pk}"

    def result_page(self, run: Run, query: QueryDict, user: User | None = None) -> Page:
        """Return the page of a finished run. Raises UnreadableError."""
