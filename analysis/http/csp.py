"""What a page may load: its own host's files and nothing else. No inline script, anywhere. And what may be kept of it.

Django's own middleware sends the other headers of the kind: nosniff, frame options, referrer and opener policy, HSTS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

_POLICY = (
    "default-src 'self'; script-src 'self'; style-src {styles}; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'none'; worker-src 'none'; media-src 'none'; "
    "frame-ancestors 'none'; base-uri 'self'; form-action 'self'; object-src 'none'"
)
_HEADERS = {
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_MARK = "allows_inline_styles"


def allow_inline_styles(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Mark a view whose page draws with plotly, which sets styles on its elements."""
    setattr(view, _MARK, True)
    return view


class ContentPolicyMiddleware:
    """Sends these headers with every answer that does not have its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        styles = "'self' 'unsafe-inline'" if getattr(request, _MARK, False) else "'self'"
        policy = {"Content-Security-Policy": _POLICY.format(styles=styles), "Cache-Control": _kept(response)}
        for name, value in {**policy, **_HEADERS}.items():
            response.headers.setdefault(name, value)
        return response

    def process_view(self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any) -> None:
        setattr(request, _MARK, getattr(view, _MARK, False))


def _kept(response: HttpResponse) -> str:
    """No proxy shows one person's answer to another; a page does not come back either after its reader logged out."""
    is_page = response.headers.get("Content-Type", "").startswith("text/html")
    return "private, no-store" if is_page else "private, no-cache"
