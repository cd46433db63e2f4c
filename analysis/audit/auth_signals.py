"""Records logins, logouts and failed logins. `analysis.accounts.lockout` records locked addresses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from django.contrib.auth import get_user_model, signals

from analysis.audit.context import cause_now, caused_by
from analysis.audit.record import record

USER = "user"


def start_listening() -> None:
    signals.user_logged_in.connect(_signed_in, dispatch_uid="audit")
    signals.user_logged_out.connect(_signed_out, dispatch_uid="audit")
    signals.user_login_failed.connect(_failed, dispatch_uid="audit")


def _signed_in(user: Any, **kwargs: Any) -> None:
    with caused_by(replace(cause_now(), actor=user)):
        record("login", target=user)


def _signed_out(user: Any, **kwargs: Any) -> None:
    """Record a logout. A session without a login is not recorded."""
    if user is not None:
        with caused_by(replace(cause_now(), actor=user)):
            record("logout", target=user)


def _failed(credentials: Any, request: Any = None, **kwargs: Any) -> None:
    """Record a failed login. Attempts during a lock-out are not recorded, so that they cannot fill the log."""
    if request is None or AxesProxyHandler.is_allowed(request, credentials):
        # the account is named only if it exists: people may type a password as their name
        name = str(credentials.get("username"))[:150]
        record("login.failed", target=get_user_model().objects.filter(username=name).first() or (USER, ""))
