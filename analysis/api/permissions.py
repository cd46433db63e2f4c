"""Who may start a run through the classic endpoint, whose clients send no credentials."""

from __future__ import annotations

import ipaddress
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from rest_framework.permissions import BasePermission

_PROXY_HEADERS = ("X-Forwarded-For", "Forwarded", "X-Real-IP")


class MayAnalyze(BasePermission):
    """Whoever is signed in; and programs on this machine, when the server was started for it alone."""

    message = "Sign in (session or HTTP Basic) to start a run"

    def has_permission(self, request: Any, view: Any) -> bool:
        return bool(request.user and request.user.is_authenticated) or is_a_program_here(request)


def is_a_program_here(request: HttpRequest) -> bool:
    """A request from this machine that no page of another site can have made a browser send."""
    return settings.SERVES_THIS_MACHINE_ONLY and _comes_from_here(request) and not _may_be_cross_site(request)


def _comes_from_here(request: HttpRequest) -> bool:
    """A proxy on this machine would make the whole world look local: its headers tell it."""
    try:
        is_loopback = ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
    return is_loopback and not any(name in request.headers for name in _PROXY_HEADERS)


def _may_be_cross_site(request: HttpRequest) -> bool:
    """Browsers name the site, and send JSON to another one only after asking (which is refused)."""
    content_type = request.META.get("CONTENT_TYPE", "").split(";")[0].strip().lower()
    origin = request.headers.get("Origin")
    return (
        request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        or content_type not in ("", "application/json")
        or (origin is not None and origin != f"{request.scheme}://{request.get_host()}")
    )
