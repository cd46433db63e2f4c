"""Single sign-on: a proxy signs people in, and names them in a header of each request.

Off unless MEMORYMARK_REMOTE_USER_HEADER names the header. It is believed only from the addresses in
MEMORYMARK_REMOTE_USER_PROXIES, which the proxy must be alone to use, and must be replaced or removed by it.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import auth
from django.contrib.auth.backends import RemoteUserBackend
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core.exceptions import MiddlewareNotUsed, ValidationError
from django.http import HttpRequest, HttpResponse

from analysis.http.client_ip import peer_address
from analysis.permissions import VIEWER

logger = logging.getLogger(__name__)

BACKEND = "analysis.accounts.single_sign_on.ProxyBackend"
_USERNAME = User._meta.get_field("username")


class ProxyBackend(RemoteUserBackend):
    """Finds the account of a person whom the proxy names; a new person gets an account, as a viewer."""

    def configure_user(self, request: HttpRequest | None, user: Any, created: bool = True) -> Any:
        if created:
            user.set_unusable_password()
            user.save(update_fields=["password"])
            user.groups.add(Group.objects.get(name=VIEWER))
        return user


class SingleSignOnMiddleware:
    """Makes the request's person the one whom the proxy names; without the header a login by proxy does not count.

    RemoteUserMiddleware would count requests of closed accounts as failed logins, and lock out a shared address.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        if not settings.REMOTE_USER_HEADER:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        name = name_from_proxy(request)
        if name is None:
            if request.session.get(auth.BACKEND_SESSION_KEY) == BACKEND:
                request.user = AnonymousUser()  # the session stays: a proxy may leave the header out for some addresses
        elif request.user.get_username() != name:
            user = ProxyBackend().authenticate(request, name)
            if user is None:
                request.user = AnonymousUser()
            else:
                auth.login(request, user, backend=BACKEND)
        return self.get_response(request)


def name_from_proxy(request: HttpRequest) -> str | None:
    """Return the account name that a trusted proxy states; None without the header, or for an impossible name."""
    text = request.headers.get(settings.REMOTE_USER_HEADER, "")
    peer = peer_address(request)
    if not text or peer is None or not any(ipaddress.ip_address(peer) in each for each in settings.REMOTE_USER_PROXIES):
        return None
    try:
        name = User.normalize_username(text.encode("latin-1").decode())  # as WSGI gives the bytes of a header
        _USERNAME.run_validators(name)
    except (UnicodeError, ValidationError):
        logger.warning("single sign-on: %r cannot be an account's name: at most 150 letters, digits and @.+-_", text)
        return None
    return name
