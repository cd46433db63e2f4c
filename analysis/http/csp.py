"""What a page may load: its own host's files and nothing else. No inline script and no inline style, anywhere.

And what may be kept of it.

Django's own middleware sends the other headers of the kind: nosniff, frame options, referrer and opener policy, HSTS.
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


class ContentPolicyMiddleware:
    """Sends these headers with every answer that does not have its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        policy = {"Content-Security-Policy": _POLICY, "Cache-Control": _cache_policy(response)}
        for name, value in {**policy, **_HEADERS}.items():
            response.headers.setdefault(name, value)
        return response


def _cache_policy(response: HttpResponse) -> str:
    """No proxy shows one person's answer to another; a page does not come back either after its reader logged out."""
    is_page = response.headers.get("Content-Type", "").startswith("text/html")
    return "private, no-store" if is_page else "private, no-cache"
