"""Chooses the rate limit of an API request; `analysis.accounts.rate_limit` counts."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import SAFE_METHODS
from rest_framework.throttling import BaseThrottle

from analysis.accounts.rate_limit import allowance_of, counted_as, seconds_to_wait
from analysis.http.client_ip import counted_address


class ScopeThrottle(BaseThrottle):
    """The rate limit of a view: its `throttle_scope` for a POST, for reading its `read_throttle_scope`, if any."""

    wait_seconds = 0.0

    def allow_request(self, request: Any, view: Any) -> bool:
        if request.method in SAFE_METHODS:
            scope = getattr(view, "read_throttle_scope", None)
        else:
            scope = (request.method == "POST" and getattr(view, "throttle_scope", None)) or "change"
        if scope is not None:
            is_person = request.user and request.user.is_authenticated  # who counts with all their tokens
            who = counted_as(request.user) if is_person else f"address {counted_address(request)}"
            self.wait_seconds = seconds_to_wait(scope, who)
            allowed = allowance_of(scope, who)
            # as the IETF's draft of RateLimit header fields; DRF copies them onto whatever it answers, also a refusal
            headers = getattr(view, "headers", {})
            headers["RateLimit-Policy"] = f'"{scope}";q={allowed.number};w={allowed.period_seconds:.0f}'
            headers["RateLimit"] = f'"{scope}";r={allowed.left};t={allowed.free_in_seconds}'
        return self.wait_seconds == 0

    def wait(self) -> float:
        return self.wait_seconds
