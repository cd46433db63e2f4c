"""The template context that all pages share."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from analysis.accounts.middleware import is_guest
from analysis.http.htmx import is_fragment
from analysis.permissions import may_manage, may_read, may_start
from analysis.workers.health import alarm_of_dead_workers
from engine import __version__


def fleet_alarm(request: HttpRequest) -> dict[str, Any]:
    """Add `fleet_alarm` for people who may read, on whole pages: a fragment polled by htmx cannot show it."""
    user = getattr(request, "user", None)
    if is_fragment(request) or not may_read(user):
        return {}
    return {"fleet_alarm": alarm_of_dead_workers}


def software_version(request: HttpRequest) -> dict[str, Any]:
    return {"software_version": __version__}


def rights(request: HttpRequest) -> dict[str, Any]:
    """Add `may_...`, to offer only what is allowed, and `is_guest`, to hide names and notes."""
    user = getattr(request, "user", None)
    guest = user is not None and is_guest(request)
    may = {"may_read": may_read(user), "may_start": may_start(user), "may_manage": may_manage(user)}
    return {**may, "is_guest": guest}
