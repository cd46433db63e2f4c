"""Errors for programs, in one of two forms, depending on the address.

The classic endpoints answer `{"status": "error", "error": "..."}`, a published contract. Everything under /api/
answers problem details, created in `analysis.http.problem_details`. Browsers get error pages.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from functools import cache

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views import defaults
from rest_framework.exceptions import APIException

from analysis.database import DATABASE_AWAY
from analysis.http.csp import policy_with_style
from analysis.http.problem_details import problem_response

VERSIONED = "/api/"
RETRY_AFTER_SECONDS = 5
DATABASE_AWAY_DETAIL = "The database cannot be used at the moment; nothing was stored. Try again in a few seconds."
_BAD_REQUEST = "This server cannot answer the request as your browser sent it. Check the address."
_SERVER_ERROR = "This page failed. Your stored runs are not affected. The server’s log names the cause."
_UNAVAILABLE = (
    "The database does not answer at the moment. Nothing was stored. Stored runs are not affected, and running runs "
    "continue. Load this page again in a few seconds."
)
_API_PATHS = ("/health", "/readyz", "/metrics", "/models", "/analyze", VERSIONED)


class BadRequest(APIException):
    """The request contains something that is not allowed; the text names it and what is allowed."""

    status_code = 400


def error_body(message: str) -> dict[str, str]:
    return {"status": "error", "error": message}


def wants_json(request: HttpRequest) -> bool:
    """Whether the client is a program: the API's address, JSON preferred, or no HTML accepted (curl has `*/*`)."""
    prefers_html = request.get_preferred_type(("text/html", "application/json")) == "text/html"
    is_browser = prefers_html and "text/html" in request.headers.get("Accept", "").lower()
    return not is_browser or request.path.startswith(_API_PATHS)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, 400, "Bad request") or error_page(400, "Bad request", _BAD_REQUEST)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, 403, str(exception) or "Not allowed") or defaults.permission_denied(request, exception)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return permission_denied(request, PermissionDenied(f"This form is no longer valid. {reason}"))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, 404, "Not found") or defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 503 while the database is away or locked, and 500 for a bug. Django calls this in its error handling."""
    if isinstance(sys.exception(), DATABASE_AWAY):
        response = _answer(request, 503, DATABASE_AWAY_DETAIL) or error_page(503, "Database unavailable", _UNAVAILABLE)
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
        return response
    return _answer(request, 500, "Internal server error") or error_page(500, "Server error", _SERVER_ERROR)


def _answer(request: HttpRequest, status: int, message: str) -> HttpResponse | None:
    if request.path.startswith(VERSIONED):
        return problem_response(request, status, message if status == 503 else "")
    return JsonResponse(error_body(message), status=status) if wants_json(request) else None


def error_page(status: int, title: str, text: str) -> HttpResponse:
    """Return the page. `title` names the error, `text` explains it and the way out."""
    page = render_to_string("error_page.html", {"title": title, "text": text})
    return HttpResponse(page, status=status, headers={"Content-Security-Policy": _policy()})


@cache
def _policy() -> str:
    style = render_to_string("error.css")
    return policy_with_style(base64.b64encode(hashlib.sha256(style.encode()).digest()).decode())
