"""What a page may load: its own host's files and nothing else. No inline script, anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

_POLICY = (
    "default-src 'self'; script-src 'self'; style-src {styles}; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'self'; form-action 'self'; object-src 'none'"
)
_MARK = "allows_inline_styles"


def allow_inline_styles(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Mark a view whose page draws with plotly, which sets styles on its elements."""
    setattr(view, _MARK, True)
    return view


class ContentPolicyMiddleware:
    """Sends the Content-Security-Policy header with every answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        styles = "'self' 'unsafe-inline'" if getattr(request, _MARK, False) else "'self'"
        response.headers.setdefault("Content-Security-Policy", _POLICY.format(styles=styles))
        return response

    def process_view(self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any) -> None:
        setattr(request, _MARK, getattr(view, _MARK, False))
