"""The three rights that everything asks for, and the three roles (Django groups) that hand them out.

    viewer       reads and exports
    operator     also starts runs; cancels, retries and annotates their own
    GPU manager  all of it for everybody's runs; devices, prices, quotas, retention, tokens and the audit log

Superusers have every right. A person in no group may sign in and sees nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import PermissionDenied

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User
    from django.http import HttpRequest
    from rest_framework.request import Request

READ, START, MANAGE = "analysis.view_run", "analysis.add_run", "analysis.manage_portal"
VIEWER, OPERATOR, MANAGER = "viewer", "operator", "GPU manager"
ROLES = {VIEWER: (READ,), OPERATOR: (READ, START), MANAGER: (READ, START, MANAGE)}


def signed_in_user(request: HttpRequest | Request) -> User:
    """Return who sent this request. For views that only people with an account reach; others are refused here, too."""
    if not request.user.is_authenticated:
        raise PermissionDenied("Sign in first.")
    return request.user


def may_read(user: User | AnonymousUser | None) -> bool:
    """See and export runs, devices and all that follows from them."""
    return user is not None and user.has_perm(READ)


def may_start(user: User | AnonymousUser | None) -> bool:
    """Start runs, and change one's own."""
    return user is not None and user.has_perm(START)


def may_manage(user: User | AnonymousUser | None) -> bool:
    """Change what is everybody's, and other people's runs."""
    return user is not None and user.has_perm(MANAGE)


def lacks_role(role: str) -> str:
    """Return what somebody without a right is told."""
    return f"Your account lacks the role {role}. A GPU manager can give it to you."
