"""The three rights of the portal, and the three roles (Django groups) that grant them.

    viewer       reads and exports
    operator     also starts runs; cancels, retries and annotates their own
    GPU manager  all of it for all people's runs; devices, prices, quotas, retention, tokens and the audit log

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
    """Return the person who sent this request. For views that only people with an account reach; refuses others."""
    if not request.user.is_authenticated:
        raise PermissionDenied("Sign in first.")
    return request.user


def may_read(user: User | AnonymousUser | None) -> bool:
    return user is not None and user.has_perm(READ)


def may_start(user: User | AnonymousUser | None) -> bool:
    return user is not None and user.has_perm(START)


def may_manage(user: User | AnonymousUser | None) -> bool:
    return user is not None and user.has_perm(MANAGE)


def lacks_role(role: str) -> str:
    return f"Your account lacks the role {role}. A GPU manager can give it to you."
