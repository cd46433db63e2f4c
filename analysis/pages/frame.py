"""What every page has around it: the main menu, the way from a section down to the page, rights, and an alarm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from analysis.accounts.middleware import is_asking, is_guest
from analysis.http.page_requests import is_fragment
from analysis.pages.help.documents import documents
from analysis.pages.kinds import BY_KIND
from analysis.permissions import may_manage, may_read, may_start
from analysis.workers.health import alarm_of_dead_workers
from engine import __version__

HOME, RUNS, ESTIMATES, TREND, HELP = "home", "analysis:runs", "analysis:estimates", "analysis:trend", "analysis:help"
_FOR_GUESTS = ((HOME, "Start"), (ESTIMATES, "Estimates"), ("analysis:matrix", "Matrix"))
_FOR_ASKERS = ((ESTIMATES, "Estimates"),)
_FOR_READERS = (
    (HOME, "Start"),
    ("analysis:commands", "Your scripts"),
    (RUNS, "Runs"),
    (ESTIMATES, "Estimates"),
    ("analysis:matrix", "Matrix"),
    ("analysis:fleet", "Fleet"),
)
_LAST = ((HELP, "Help"),)
_FOR_MANAGERS = (*_FOR_READERS, ("admin:index", "Admin"))
_SECTIONS = {RUNS: "Runs", ESTIMATES: "Estimates", TREND: "Trend", HELP: "Help", "account": "Account"}
_BELOW = {
    "analysis:run": ("Run {run_id}", RUNS),
    "analysis:compare": ("Compare", RUNS),
    **{f"analysis:{kind}s": (f"{kind.label}s", RUNS) for kind, each in BY_KIND.items() if each.help_text},
    "analysis:advice": ("What to paste", "analysis:run"),
    "analysis:what_to_change": ("What to change", ESTIMATES),
    "analysis:document": ("{title}", HELP),
    "account_password": ("Password", "account"),
    "notifications": ("Notifications", "account"),
    "subscription": ("Notification", "notifications"),
}
"""The title of each page below a section, and the page that it stands below."""
_REACHED_FROM = {
    "analysis:run_create": HOME,  # where a form with errors is answered
    "api-docs": HELP,
    **dict.fromkeys((TREND, "analysis:trend_acknowledge"), RUNS),
    **{f"analysis:{kind}_start": RUNS for kind, pages in BY_KIND.items() if pages.help_text},
}
"""Pages that belong to an entry of the menu, though they stand below no section."""
_OWN_PAGES = ("account",)
"""Sections that need no right to read, only a login."""


@dataclass(frozen=True, slots=True)
class MenuEntry:
    title: str
    address: str
    current: str


@dataclass(frozen=True, slots=True)
class Crumb:
    """One step of the way; `address` is empty for the page itself."""

    title: str
    address: str = ""


def frame(request: HttpRequest) -> dict[str, Any]:
    """Add `menu`, `breadcrumbs`, `is_guest`, and `may_...` to offer only what is allowed: a context processor."""
    user = getattr(request, "user", None)  # an error page may be older than the session
    return {
        "software_version": __version__,
        **{"may_read": may_read(user), "may_start": may_start(user), "may_manage": may_manage(user)},
        "is_guest": user is not None and is_guest(request),  # names and notes are hidden
        # a fragment polled by htmx cannot show it
        "fleet_alarm": alarm_of_dead_workers if may_read(user) and not is_fragment(request) else None,
        "menu": [MenuEntry(title, reverse(name), _current(request, name)) for name, title in _menu(request, user)],
        "breadcrumbs": _breadcrumbs(request, user),
    }


def _menu(request: HttpRequest, user: Any) -> tuple[tuple[str, str], ...]:
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
    at = request.resolver_match.view_name if request.resolver_match else ""
    if at in _REACHED_FROM or at in _BELOW:
        return "true" if _REACHED_FROM.get(at, _section_of(at)) == name else ""
    return "true" if address != "/" and request.path.startswith(address) else ""


def _breadcrumbs(request: HttpRequest, user: Any) -> list[Crumb]:
    """Return the way from the section to this page; none on a section itself."""
    match = request.resolver_match
    if match is None or user is None:
        return []
    values = {**match.kwargs, "title": _title_of_document(match.kwargs.get("name"))}
    trail = [*_trail(match.view_name, values, has_query=bool(request.GET))][::-1]
    is_open = may_read(user) or (user.is_authenticated and _section_of(match.view_name) in _OWN_PAGES)
    return trail if is_open and len(trail) > 1 else []


def _trail(name: str, values: Mapping[str, Any], *, has_query: bool) -> Iterator[Crumb]:
    if name == TREND and has_query:  # a series has the address of the section, with a query
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
