"""The right that each page requires. A page without a mark requires a role, so that none is open by mistake.

Reading requires the right to read; a change requires the right to start runs. A view declares an exception with one
of the decorators below. Views of the API and the admin panel have their own checks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from analysis.permissions import OPERATOR, VIEWER, lacks_role, may_read, may_start

View = TypeVar("View", bound=Callable[..., Any])

_MARK = "asks_for"
_SIGNED_IN = "to be signed in"
_PUBLIC = "may_be_public"
_ASKED = "may_be_asked"
_RIGHTS = {VIEWER: may_read, OPERATOR: may_start}
_SAFE = ("GET", "HEAD", "OPTIONS")


def _mark(name: str, value: object) -> Callable[[View], View]:
    def mark(view: View) -> View:
        setattr(view, name, value)
        return view

    return mark


login_required_only = _mark(_MARK, _SIGNED_IN)
"""Marks a view that any person with an account may open, without a role: the pages of their own account."""
for_readers = _mark(_MARK, VIEWER)
"""Marks a view that requires only the right to read, also by POST: it changes nothing or checks further rights."""
may_be_public = _mark(_PUBLIC, True)
"""Marks a page that MEMORYMARK_PUBLIC_READ_ONLY opens to everybody: it shows no names or notes of people."""
may_be_asked = _mark(_ASKED, True)
"""Marks the page that MEMORYMARK_GUEST_ESTIMATES opens to everybody: it answers from stored estimates alone."""


def require_right(request: HttpRequest, view: Callable[..., Any]) -> None:
    """Raise PermissionDenied, naming the missing role. For a person who is signed in."""
    is_safe = request.method in _SAFE
    wanted = getattr(view, _MARK, VIEWER if is_safe else OPERATOR)
    if wanted != _SIGNED_IN and not _RIGHTS[wanted](request.user):
        raise PermissionDenied(lacks_role(wanted))


def require_role(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Check the rights for a view that is called by another, public view: the middleware does not see it."""

    @wraps(view)
    def asking(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        refusal = None if is_open_to_guest(request, view) else refused(request, view)
        return refusal or view(request, *args, **kwargs)

    return asking


def refused(request: HttpRequest, view: Callable[..., Any]) -> HttpResponse | None:
    """Return a redirect to the login; None for a person with the right. Raises PermissionDenied without the right."""
    if not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    require_right(request, view)
    return None


class RightsMiddleware(LoginRequiredMiddleware):
    def process_view(
        self, request: HttpRequest, view_func: Callable[..., Any], view_args: Any, view_kwargs: Any
    ) -> HttpResponseBase | None:
        if not getattr(view_func, "login_required", True) or is_open_to_guest(request, view_func):
            return None
        if (response := super().process_view(request, view_func, view_args, view_kwargs)) is not None:
            return response
        if "admin" not in getattr(request.resolver_match, "app_names", ()):
            require_right(request, view_func)
        return None


def is_guest(request: HttpRequest) -> bool:
    """Whether the request is of a person without the right to read, on a server with public pages."""
    return settings.PUBLIC_READ_ONLY and not may_read(request.user)


def is_asking(request: HttpRequest) -> bool:
    """Whether the request is of a person without the right to read, who may ask for stored estimates."""
    return settings.GUEST_ESTIMATES and not may_read(request.user)


def is_open_to_guest(request: HttpRequest, view: Callable[..., Any]) -> bool:
    if request.method not in _SAFE:
        return False
    is_public = is_guest(request) and getattr(view, _PUBLIC, False)
    return is_public or (is_asking(request) and getattr(view, _ASKED, False))
