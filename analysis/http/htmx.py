"""Requests that htmx sends for a part of a page."""

from __future__ import annotations

from django.http import HttpRequest


def is_fragment(request: HttpRequest) -> bool:
    """Whether a page that is open asks for one of its parts; a person who opens the address gets a whole page."""
    return bool(getattr(request, "htmx", False))
