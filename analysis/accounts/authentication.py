"""Authentication of programs: by token, or by name and password over HTTP Basic."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from rest_framework.authentication import BaseAuthentication, BasicAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied, Throttled

from analysis.accounts.lockout import TOO_MANY, seconds_locked
from analysis.accounts.tokens import token_note_use, token_of
from analysis.audit.record import set_actor
from analysis.http.client_ip import client_address
from analysis.models import ApiToken

_NAME_LENGTH = 150  # the length of Django's own column
_REALM = ' realm="MemoryMark"'
_SCHEMES = (b"bearer", b"token")
_REFUSED = "This token is not valid: it may be mistyped, expired or revoked."
"""The same message for every reason, so that it does not reveal which tokens exist."""
_ONLY_REPORTS = "This token can only report runs (mm_p_...). Create another on your account page"


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer mm_...`, or `Token mm_...`. `request.auth` is then the token's row.

    A token that only reports is refused before any permission, unless the view says `takes_reports`.
    """

    def authenticate(self, request: Any) -> tuple[User, ApiToken] | None:
        scheme, _, secret = get_authorization_header(request).partition(b" ")
        if scheme.lower() not in _SCHEMES:
            return None
        token = token_of(secret.strip().decode("latin-1"))
        if token is None:
            raise AuthenticationFailed(_REFUSED, code="token_invalid")
        if token.only_reports and not getattr(request.parser_context["view"], "takes_reports", False):
            raise PermissionDenied(_ONLY_REPORTS, code="token_only_reports")
        token_note_use(token, client_address(request))
        set_actor(token.owner)
        return token.owner, token

    def authenticate_header(self, request: Any) -> str:
        """Offer both methods of authentication; DRF would offer only the first."""
        return f"Bearer{_REALM}, Basic{_REALM}"


class PasswordAuthentication(BasicAuthentication):
    """HTTP Basic, under the same lock-out as the login page."""

    def authenticate_credentials(self, userid: str, password: str, request: Any = None) -> tuple[User, None]:
        if len(userid) > _NAME_LENGTH or "\x00" in userid + password:
            raise AuthenticationFailed("Name or password is wrong.", code="password_wrong")
        http_request = request._request  # axes stores its marks on Django's own request
        try:
            user, _ = super().authenticate_credentials(userid, password, http_request)
        except AuthenticationFailed as exc:
            if getattr(http_request, "axes_locked_out", False):
                raise Throttled(seconds_locked(http_request), TOO_MANY, code="locked_out") from exc
            raise
        set_actor(user)
        return user, None
