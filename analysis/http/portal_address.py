"""The address under which programs on other machines reach this portal."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest


def portal_address(request: HttpRequest) -> str:
    """Return MEMORYMARK_PUBLIC_URL, or else the address at which this page was opened; it ends in a slash."""
    return f"{settings.PUBLIC_URL}/" if settings.PUBLIC_URL else request.build_absolute_uri("/")
