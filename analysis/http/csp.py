"""The content security policy: a page loads only files of its own host, no inline scripts and no inline styles.

Also the cache policy. Django's own middleware sends the other security headers: nosniff, frame options, referrer and
opener policy, HSTS.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'none'; worker-src 'none'; media-src 'none'; "
    "frame-ancestors 'none'; base-uri 'self'; form-action 'self'; object-src 'none'"
)
_HEADERS = {
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def policy_with_style(sha256: str) -> str:
    return _POLICY.replace("style-src 'self'", f"style-src 'self' 'sha256-{sha256}'")


class ContentPolicyMiddleware:
    """Adds these headers to every response that does not have its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # no proxy caches a person's response, and no browser shows a page again after a logout
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        cache_policy = "private, no-store" if is_page else "private, no-cache"
        policy = {"Content-Security-Policy": _POLICY, "Cache-Control": cache_policy}
        for name, value in {**policy, **_HEADERS}.items():
            response.headers.setdefault(name, value)
        return response
