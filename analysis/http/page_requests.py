"""Requests for pages: whether one is for a part, and the address under which other machines reach this portal."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest


def is_fragment(request: HttpRequest) -> bool:
    """Whether a page that is open asks for one of its parts; a person who opens the address gets a whole page."""
    return bool(getattr(request, "htmx", False))


def portal_address(request: HttpRequest) -> str:
    """Return MEMORYMARK_PUBLIC_URL, or else the address at which this page was opened; it ends in a slash."""
    return f"{settings.PUBLIC_URL}/" if settings.PUBLIC_URL else request.build_absolute_uri("/")
