"""Chooses the rate limit of an API request; `analysis.accounts.rate_limit` counts."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import SAFE_METHODS
from rest_framework.throttling import BaseThrottle

from analysis.accounts.rate_limit import Allowance, allowance_of, counted_as, seconds_to_wait
from analysis.http.client_ip import counted_address


class ScopeThrottle(BaseThrottle):
    """The rate limit of a view.

    Changes count towards its `throttle_scope`; reading is not limited unless it has a `read_throttle_scope`.
    """

    wait_seconds = 0.0

    def allow_request(self, request: Any, view: Any) -> bool:
        if request.method in SAFE_METHODS:
            scope = getattr(view, "read_throttle_scope", None)
        else:
            scope = getattr(view, "throttle_scope", None) or "change"
        if scope is not None:
            who = self._who(request)
            self.wait_seconds = seconds_to_wait(scope, who)
            # DRF copies the view's headers onto whatever it answers, a refusal as well
            getattr(view, "headers", {}).update(_headers(scope, allowance_of(scope, who)))
        return self.wait_seconds == 0

    def wait(self) -> float:
        return self.wait_seconds

    def _who(self, request: Any) -> str:
        """Return the key of a person, for all their tokens; or of an address."""
        if request.user and request.user.is_authenticated:
            return counted_as(request.user)
        return f"address {counted_address(request)}"


def _headers(scope: str, allowance: Allowance) -> dict[str, str]:
    """Write them as the IETF's draft of RateLimit header fields has them."""
    policy = f'"{scope}";q={allowance.number};w={allowance.period_seconds:.0f}'
    left = f'"{scope}";r={allowance.left};t={allowance.free_in_seconds}'
    return {"RateLimit-Policy": policy, "RateLimit": left}
