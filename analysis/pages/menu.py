"""The main menu: one list for the pages and for the admin panel, with what each reader may open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from analysis.accounts.middleware import is_asking, is_guest
from analysis.pages.kinds import BY_KIND
from analysis.permissions import may_manage, may_read

HOME, RUNS, HELP = "home", "analysis:runs", "analysis:help"
_FOR_GUESTS = ((HOME, "Start"), ("analysis:estimates", "Estimates"), ("analysis:matrix", "Matrix"))
_FOR_ASKERS = (("analysis:estimates", "Estimates"),)
_FOR_READERS = (
    (HOME, "Start"),
    ("analysis:commands", "Your scripts"),
    (RUNS, "Runs"),
    ("analysis:estimates", "Estimates"),
    ("analysis:matrix", "Matrix"),
    ("analysis:fleet", "Fleet"),
)
_LAST = ((HELP, "Help"),)
_FOR_MANAGERS = (*_FOR_READERS, ("admin:index", "Admin"))
_REACHED_FROM = {
    "analysis:run_create": HOME,  # where a form with errors is answered
    "analysis:compare": RUNS,
    "analysis:trend": RUNS,
    "analysis:trend_acknowledge": RUNS,
    "analysis:document": HELP,
    **{f"analysis:{kind}{end}": HELP for kind, pages in BY_KIND.items() if pages.help_text for end in ("s", "_start")},
}
"""Pages that belong to an entry, though their address is not below it."""


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """One entry. `current` is the value of `aria-current`: page, true for a page below it, or empty."""

    title: str
    address: str
    current: str


def menu(request: HttpRequest) -> dict[str, Any]:
    return {"menu": [MenuEntry(title, reverse(name), _current(request, name)) for name, title in _names(request)]}


def _names(request: HttpRequest) -> tuple[tuple[str, str], ...]:
    user = getattr(request, "user", None)  # an error page may be older than the session
    if may_read(user):
        return (*(_FOR_MANAGERS if may_manage(user) else _FOR_READERS), *_LAST)
    if user is None:
        return ()
    if is_guest(request):
        return _FOR_GUESTS
    return _FOR_ASKERS if is_asking(request) else ()


def _current(request: HttpRequest, name: str) -> str:
    address = reverse(name)
    if request.path == address:
        return "page"
    at = request.resolver_match.view_name if request.resolver_match else None
    if at in _REACHED_FROM:
        return "true" if _REACHED_FROM[at] == name else ""
    return "true" if address != "/" and request.path.startswith(address) else ""
