"""The main menu: one list for the pages and for the admin panel, with what each reader may open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from analysis.accounts.middleware import is_guest
from analysis.permissions import may_manage, may_read

HOME = "home"
_FOR_GUESTS = ((HOME, "Start"), ("analysis:estimates", "Estimates"), ("analysis:matrix", "Matrix"))
_FOR_READERS = (
    (HOME, "Start"),
    ("analysis:runs", "Runs"),
    ("analysis:compare", "Compare"),
    ("analysis:estimates", "Estimates"),
    ("analysis:matrix", "Matrix"),
    ("analysis:trend", "Trend"),
    ("analysis:fleet", "Fleet"),
)
_FOR_MANAGERS = (*_FOR_READERS, ("admin:index", "Admin"))


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `current` is the value of `aria-current`: page, true for a page below it, or empty."""

    title: str
    address: str
    current: str


def menu(request: HttpRequest) -> dict[str, Any]:
    """Add `menu`, the entries that this reader may open: a context processor."""
    return {"menu": [Entry(title, reverse(name), _current(request, reverse(name))) for name, title in _names(request)]}


def _names(request: HttpRequest) -> tuple[tuple[str, str], ...]:
    user = getattr(request, "user", None)  # an error page may be older than the session
    if may_manage(user):
        return _FOR_MANAGERS
    if may_read(user):
        return _FOR_READERS
    return _FOR_GUESTS if user is not None and is_guest(request) else ()


def _current(request: HttpRequest, address: str) -> str:
    if request.path == address:
        return "page"
    return "true" if address != "/" and request.path.startswith(address) else ""
