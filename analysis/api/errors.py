"""One form for every error a program gets: `{"status": "error", "error": "..."}`."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import defaults
from rest_framework.exceptions import APIException
from rest_framework.response import Response
from rest_framework.views import exception_handler

from engine.errors import SpecError

_API_PATHS = ("/health", "/readyz", "/metrics", "/models", "/analyze", "/api/")


class BadRequest(APIException):
    """The request holds something that is not allowed; the text says what and what is."""

    status_code = 400


def error_body(message: str) -> dict[str, str]:
    return {"status": "error", "error": message}


def api_exception(exc: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exceptions and a refused spec in our form; anything else goes on to Django's 500."""
    if isinstance(exc, SpecError):
        exc = BadRequest(str(exc))
    response = exception_handler(exc, context)
    if response is not None:
        response.data = error_body(_text(response.data))
    return response


def wants_json(request: HttpRequest) -> bool:
    """Whether this client is a program: it asks for JSON before HTML, or the address is the API's."""
    prefers_json = request.get_preferred_type(("text/html", "application/json")) == "application/json"
    return prefers_json or request.path.startswith(_API_PATHS)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, 400, "Bad request") or defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, 403, "Not allowed") or defaults.permission_denied(request, exception)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form that was sent without its token: a page of ours, not Django's."""
    return permission_denied(request, PermissionDenied(f"This form is no longer valid. {reason}"))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, 404, "Not found") or defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    return _answer(request, 500, "Internal server error") or defaults.server_error(request)


def _answer(request: HttpRequest, status: int, message: str) -> JsonResponse | None:
    """Our form for every client that does not name HTML, as browsers do; None: a page."""
    is_for_a_page = "text/html" in request.headers.get("Accept", "") and not wants_json(request)
    return None if is_for_a_page else JsonResponse(error_body(message), status=status)


def _text(data: Any) -> str:
    """DRF's nested details as one line."""
    if isinstance(data, dict):
        parts = [_text(value) if key == "detail" else f"{key}: {_text(value)}" for key, value in data.items()]
        return "; ".join(parts)
    return "; ".join(map(_text, data)) if isinstance(data, list) else str(data)
