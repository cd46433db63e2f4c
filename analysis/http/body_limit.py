"""Refuses requests before any view sees them: too large ones, and ones that cannot be stored."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse


class RequestLimitsMiddleware:
    """Checks the stated length of a body: the server reads no more than that."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        largest = settings.BODY_MAX_BYTES_OF.get(request.path, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        stated = request.META.get("CONTENT_LENGTH") or "0"
        if stated.isdecimal() and int(stated[:18]) > largest:
            return _refusal(request, 413, f"The body is larger than this server accepts ({largest:,} bytes)")
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            return _refusal(request, 400, "The address contains a NUL character")
        return self.get_response(request)


def _refusal(request: HttpRequest, status: int, message: str) -> HttpResponse:
    # imported here, because REST framework reads settings that name our own classes, before those can be imported
    from analysis.http.errors import error_body, error_page, wants_json
    from analysis.http.problem_details import problem_response

    if request.path.startswith("/api/"):
        return problem_response(request, status, message)
    if not wants_json(request):
        return error_page(status, "Too large" if status == 413 else "Bad request", f"{message}.")
    return JsonResponse(error_body(message), status=status)
