"""The way from a section of the portal down to the page that is shown: what the menu alone does not say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from analysis.pages.help.documents import documents
from analysis.pages.kinds import BY_KIND
from analysis.permissions import may_read

_SECTIONS = {
    "analysis:runs": "Runs",
    "analysis:estimates": "Estimates",
    "analysis:trend": "Trend",
    "analysis:help": "Help",
    "account": "Account",
}
_BELOW = {
    "analysis:run": ("Run {run_id}", "analysis:runs"),
    "analysis:compare": ("Compare", "analysis:runs"),
    **{f"analysis:{kind}s": (f"{kind.label}s", "analysis:help") for kind, each in BY_KIND.items() if each.help_text},
    "analysis:advice": ("What to paste", "analysis:run"),
    "analysis:what_to_change": ("What to change", "analysis:estimates"),
    "analysis:document": ("{title}", "analysis:help"),
    "account_password": ("Password", "account"),
    "notifications": ("Notifications", "account"),
    "subscription": ("Notification", "notifications"),
}
"""The title of each page below a section, and the page that it stands below."""
_OWN_PAGES = ("account",)
"""Sections that need no right to read, only a login."""


@dataclass(frozen=True, slots=True)
class Crumb:
    """One step of the way. `address` is empty for the page itself, which needs no link."""

    title: str
    address: str = ""


def breadcrumbs(request: HttpRequest) -> dict[str, Any]:
    """Add `breadcrumbs`, from the section to this page; none on a section itself: a context processor."""
    match, user = getattr(request, "resolver_match", None), getattr(request, "user", None)
    if match is None or user is None:
        return {}
    values = {**match.kwargs, "title": _title_of_document(match.kwargs.get("name"))}
    trail = [*_trail(match.view_name, values, has_query=bool(request.GET))][::-1]
    is_open = may_read(user) or (user.is_authenticated and _section_of(match.view_name) in _OWN_PAGES)
    return {"breadcrumbs": trail if is_open and len(trail) > 1 else []}


def _trail(name: str, values: Mapping[str, Any], *, has_query: bool) -> Iterator[Crumb]:
    if name == "analysis:trend" and has_query:  # a series has the address of the section, with a query
        yield Crumb("Series")
        yield Crumb(_SECTIONS[name], reverse(name))
        return
    is_page_itself = True
    while name in _BELOW:
        title, above = _BELOW[name]
        yield Crumb(title.format(**values), "" if is_page_itself else _address(name, values))
        name, is_page_itself = above, False
    if name in _SECTIONS:
        yield Crumb(_SECTIONS[name], "" if is_page_itself else _address(name, values))


def _address(name: str, values: Mapping[str, Any]) -> str:
    return reverse(name, args=[values["run_id"]] if name == "analysis:run" else [])


def _section_of(name: str) -> str:
    while name in _BELOW:
        name = _BELOW[name][1]
    return name


def _title_of_document(name: str | None) -> str:
    found = documents().get(name or "")
    return found.title if found else name or ""
