"""Who signed in and out, and who could not. That an address was locked, `analysis.accounts.lockout` records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from django.contrib.auth import get_user_model, signals

from analysis.audit.context import cause_now, caused_by
from analysis.audit.record import Target, record

USER = "user"


def start_listening() -> None:
    """Connect the receivers, once, when the application is ready."""
    signals.user_logged_in.connect(_signed_in, dispatch_uid="audit")
    signals.user_logged_out.connect(_signed_out, dispatch_uid="audit")
    signals.user_login_failed.connect(_failed, dispatch_uid="audit")


def _signed_in(user: Any, **kwargs: Any) -> None:
    with caused_by(replace(cause_now(), actor=user)):
        record("login", target=user)


def _signed_out(user: Any, **kwargs: Any) -> None:
    """Record a logout. A session that nobody had signed in to ends without a word."""
    if user is not None:
        with caused_by(replace(cause_now(), actor=user)):
            record("logout", target=user)


def _failed(credentials: Any, request: Any = None, **kwargs: Any) -> None:
    """Not while the door is locked anyway: so nobody can fill the log by knocking."""
    if request is None or AxesProxyHandler.is_allowed(request, credentials):
        record("login.failed", target=_account(credentials.get("username")))


def _account(name: Any) -> Target:
    """Named only if there is one of that name: people type their password there, too."""
    person = get_user_model().objects.filter(username=str(name)[:150]).first()
    return person or (USER, "")
