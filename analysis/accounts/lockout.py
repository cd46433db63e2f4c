"""Who guesses passwords is locked out for a while: django-axes counts the failures, in the database.

Counted are the failures of one name from one address, and of one address with any names. The second limit is the
higher, for a whole lab may sit behind one address. A name is never locked everywhere: a stranger who fails with it
must not keep its owner out.
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
    """The database handler of axes, with a limit of its own for an address as a whole."""

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Axes compares this with its one limit, that of a name from an address."""
        of_name, of_address = (_failures(attempts) for attempts in self.get_user_attempts(request, credentials))
        is_over = of_address >= settings.LOCKOUT_FAILURES_PER_ADDRESS
        return max(of_name, settings.AXES_FAILURE_LIMIT) if is_over else of_name

    def user_login_failed(
        self, sender: str, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any
    ) -> None:
        """Record when an address was locked; not for which name, where people type passwords."""
        was_locked = getattr(request, "axes_locked_out", False)
        super().user_login_failed(sender, credentials, request, **kwargs)
        if getattr(request, "axes_locked_out", False) and not was_locked:
            record("login.lock", target=("address", str(get_client_ip_address(request))))

    def reset_user_attempts(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """After a login: those of this name alone, or one account would clear an address for trying all others."""
        of_name, _of_address = self.filter_user_attempts(request, credentials)
        return int(of_name.delete()[0])


def seconds_locked(request: HttpRequest) -> int:
    """Until the limits let this client try again: at most the whole time, for failures in it do not prolong it."""
    cool_off = get_cool_off(request) or timedelta(0)
    here = AccessAttempt.objects.filter(ip_address=get_client_ip_address(request))
    latest: datetime | None = here.aggregate(latest=Max("attempt_time"))["latest"]
    left = (latest + cool_off - timezone.now()) if latest else cool_off
    return max(1, ceil(left.total_seconds()))


def locked_out(
    request: HttpRequest, response: HttpResponse | None = None, credentials: dict[str, Any] | None = None
) -> HttpResponse:
    """Return what axes answers in place of the login page. The API said it already, in its own form."""
    if response is not None and response.status_code == 429:
        return response
    wait_seconds = seconds_locked(request)
    headers = {"Retry-After": str(wait_seconds), "Cache-Control": "no-store"}
    if wants_json(request):
        return JsonResponse(error_body(f"{TOO_MANY} Try again in {wait_seconds} s."), status=429, headers=headers)
    context = {"wait_minutes": ceil(wait_seconds / 60)}
    page = render_to_string("registration/locked_out.html", context, request)
    return HttpResponse(page, status=429, headers=headers)


def _failures(attempts: Any) -> int:
    return int(attempts.aggregate(failures=Sum("failures_since_start"))["failures"] or 0)
