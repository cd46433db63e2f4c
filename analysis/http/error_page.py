"""Error pages that need nothing but themselves: no database, no person, no other file.

Their style is inside. The content policy of these answers allows it by its hash, and nothing else inline.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache

from django.http import HttpResponse
from django.template.loader import render_to_string

from analysis.http.csp import policy_with_style


def error_page(status: int, title: str, text: str) -> HttpResponse:
    """Return the page; `title` says what happened, `text` what it means and what to do."""
    page = render_to_string("error_page.html", {"title": title, "text": text})
    return HttpResponse(page, status=status, headers={"Content-Security-Policy": _policy()})


@cache
def _policy() -> str:
    style = render_to_string("error.css")
    return policy_with_style(base64.b64encode(hashlib.sha256(style.encode()).digest()).decode())
