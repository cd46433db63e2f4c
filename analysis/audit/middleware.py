"""Gives each request an id: the caller's, if well formed, else a new one. The response and the logs have it."""

from __future__ import annotations

import re
from collections.abc import Callable
from uuid import uuid4

from django.http import HttpRequest, HttpResponse

from analysis.audit.context import WorkCause, caused_by
from analysis.http.client_ip import client_address

HEADER = "X-Request-ID"
_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIdMiddleware:
    """The outermost middleware, so that every response, and every login during the request, has its id."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        request_id = given if _WELL_FORMED.fullmatch(given) else uuid4().hex
        # the stubs only know the attributes that Django's own middleware adds
        request.request_id = request_id  # type: ignore[attr-defined]
        with caused_by(WorkCause(request_id, client_address(request), request)):
            response = self.get_response(request)
        response.headers[HEADER] = request_id
        return response
