"""Permissions of the API: the three rights, and the classic endpoint, whose clients send no credentials."""

from __future__ import annotations

import ipaddress
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from rest_framework.permissions import SAFE_METHODS, BasePermission

from analysis.models import ApiToken
from analysis.permissions import MANAGER, OPERATOR, VIEWER, lacks_role, may_manage, may_read, may_start

_HAS_RIGHT_OF = {VIEWER: may_read, OPERATOR: may_start, MANAGER: may_manage}
_PROXY_HEADERS = ("X-Forwarded-For", "Forwarded", "X-Real-IP")


class MayUse(BasePermission):
    """Requires a viewer to read, and an operator to change; and for a change with a token, one that may write."""

    message = ""
    code = "role"
    reading, changing = VIEWER, OPERATOR

    def has_permission(self, request: Any, view: Any) -> bool:
        is_safe = request.method in SAFE_METHODS
        role = self.reading if is_safe else self.changing
        if not _HAS_RIGHT_OF[role](request.user):
            self.message = lacks_role(role)
            return False
        if not is_safe and isinstance(request.auth, ApiToken) and not request.auth.may_write:
            self.message, self.code = "This token can only read; use one that may write (mm_w_...)", "token_only_reads"
            return False
        return True


class MayManage(MayUse):
    """Requires a GPU manager."""

    reading = changing = MANAGER


class MayChangeOwn(MayUse):
    """Requires a viewer, who may change what is their own."""

    reading = changing = VIEWER


class MayRead(BasePermission):
    """Requires the right to read, for any method: a POST that compares runs changes nothing."""

    message = lacks_role(VIEWER)
    code = "role"

    def has_permission(self, request: Any, view: Any) -> bool:
        return may_read(request.user)


class MayAnalyze(MayUse):
    """Requires the right to start runs; or a program on this machine, if the server serves only this machine."""

    def has_permission(self, request: Any, view: Any) -> bool:
        if super().has_permission(request, view):
            return True
        if request.user and request.user.is_authenticated:  # credentials count with their rights, on this machine too
            return False
        return settings.SERVES_THIS_MACHINE_ONLY and _is_local(request) and not _may_be_cross_site(request)


def _is_local(request: HttpRequest) -> bool:
    """Whether the request comes from this machine; not through a local proxy, which is recognised by its headers."""
    try:
        is_loopback = ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
    return is_loopback and not any(name in request.headers for name in _PROXY_HEADERS)


def _may_be_cross_site(request: HttpRequest) -> bool:
    """Whether another site's page may have sent it. Browsers name the site, and cannot send it JSON unasked."""
    content_type = request.META.get("CONTENT_TYPE", "").split(";")[0].strip().lower()
    origin = request.headers.get("Origin")
    return (
        request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        or content_type not in ("", "application/json")
        or (origin is not None and origin != f"{request.scheme}://{request.get_host()}")
    )
