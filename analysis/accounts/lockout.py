"""A temporary lock-out after failed logins, which django-axes counts in the database.

Two limits are counted: failures of one name from one address, and of one address with any name. The second limit is
higher, because a whole lab may share an address. A name is never locked for all addresses: otherwise a stranger could
lock out its owner.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_ip_address, get_cool_off
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Max, Sum
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils import timezone

from analysis.audit.record import record
from analysis.http.errors import error_body, wants_json

TOO_MANY = "Too many failed logins from this address."


class PerAddressLockoutHandler(AxesDatabaseHandler):  # type: ignore[misc]  # axes has no types
    """The database handler of axes, with a second limit for an address as a whole."""

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Return the count that axes compares with its only limit, for a name from an address."""
        by_name, by_address = (
            int(attempts.aggregate(failures=Sum("failures_since_start"))["failures"] or 0)
            for attempts in self.get_user_attempts(request, credentials)
        )
        is_over = by_address >= settings.LOCKOUT_FAILURES_PER_ADDRESS
        return max(by_name, settings.AXES_FAILURE_LIMIT) if is_over else by_name

    def user_login_failed(
        self, sender: str, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any
    ) -> None:
        """Record that an address was locked, without the name: people may have typed a password there."""
        was_locked = getattr(request, "axes_locked_out", False)
        super().user_login_failed(sender, credentials, request, **kwargs)
        if getattr(request, "axes_locked_out", False) and not was_locked:
            record("login.lock", target=("address", str(get_client_ip_address(request))))

    def reset_user_attempts(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Forget a name's failures after its login. Others' remain, or a login could hide attempts on other names."""
        by_name, _ = self.filter_user_attempts(request, credentials)
        return int(by_name.delete()[0])


def seconds_locked(request: HttpRequest) -> int:
    """Return how long this client is still locked out. Failures during the lock-out do not prolong it."""
    cool_off = get_cool_off(request) or timedelta(0)
    here = AccessAttempt.objects.filter(ip_address=get_client_ip_address(request))
    latest: datetime | None = here.aggregate(latest=Max("attempt_time"))["latest"]
    left = (latest + cool_off - timezone.now()) if latest else cool_off
    return max(1, ceil(left.total_seconds()))


def locked_out(
    request: HttpRequest, response: HttpResponse | None = None, credentials: dict[str, Any] | None = None
) -> HttpResponse:
    """Return axes' response in place of the login page. The API has its own form."""
    if response is not None and response.status_code == 429:
        return response
    wait_seconds = seconds_locked(request)
    headers = {"Retry-After": str(wait_seconds), "Cache-Control": "no-store"}
    if wants_json(request):
        return JsonResponse(error_body(f"{TOO_MANY} Try again in {wait_seconds} s."), status=429, headers=headers)
    context = {"wait_minutes": ceil(wait_seconds / 60)}
    page = render_to_string("registration/locked_out.html", context, request)
    return HttpResponse(page, status=429, headers=headers)
