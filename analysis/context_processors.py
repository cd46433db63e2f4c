"""What every page knows besides its own view's context."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from analysis.access.rights import may_manage, may_start
from analysis.health import alarm_of_dead_workers


def fleet_alarm(request: HttpRequest) -> dict[str, Any]:
    """`fleet_alarm` for signed-in people on whole pages: a fragment that htmx polls has no place to show it."""
    user = getattr(request, "user", None)
    is_fragment = bool(getattr(request, "htmx", False))
    if user is None or not user.is_authenticated or is_fragment:
        return {}
    return {"fleet_alarm": alarm_of_dead_workers}


def rights(request: HttpRequest) -> dict[str, Any]:
    """`may_start` and `may_manage`: what is not allowed is not offered."""
    user = getattr(request, "user", None)
    return {"may_start": may_start(user), "may_manage": may_manage(user)}
