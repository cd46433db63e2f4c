"""Each request has an id: the caller's, if it is well formed, else one of ours. It is on the answer and in the logs."""

from __future__ import annotations

import re
from collections.abc import Callable
from uuid import uuid4

from django.http import HttpRequest, HttpResponse

from analysis.audit.context import Cause, caused_by
from analysis.http.client_ip import client_address

HEADER = "X-Request-ID"
_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIdMiddleware:
    """Stands first, so that whatever answers, and whoever signs in meanwhile, does so within this request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        request_id = given if _WELL_FORMED.fullmatch(given) else uuid4().hex
        # middleware may add to a request; the stubs know only what Django's own adds
        request.request_id = request_id  # type: ignore[attr-defined]
        with caused_by(Cause(request_id, client_address(request), request)):
            response = self.get_response(request)
        response.headers[HEADER] = request_id
        return response
