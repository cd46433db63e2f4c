"""The OpenAPI description of the API: what is told beside what each view says of itself, and the page that shows it.

Every address under /api/v1/ may answer certain problems: they are added here, so that no view can forget them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.classic import schema as classic_schema  # noqa: F401  # registers what it says of the classic endpoints
from analysis.api.permissions import MayRead
from analysis.http.problem_details import CONTENT_TYPE

VERSIONED, CLASSIC = "/api/v1/", ("/health", "/models", "/analyze")
Schema = dict[str, Any]

_TEXT, _MAYBE_TEXT = {"type": "string"}, {"type": ["string", "null"]}
_PROBLEM: Schema = {
    "type": "object",
    "description": "What is wrong with a request (RFC 9457). `code` is for programs, `detail` for people.",
    "required": ["type", "title", "status", "detail", "instance", "code", "errors", "request_id"],
    "properties": {
        **dict.fromkeys(("type", "title", "detail", "instance", "code"), _TEXT),
        "status": {"type": "integer"},
        "request_id": {**_MAYBE_TEXT, "description": "X-Request-ID of this answer: name it when you ask for help."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["detail", "code"],
                "properties": {
                    "pointer": {**_TEXT, "description": "JSON pointer into the body; empty: all of it."},
                    "parameter": {**_TEXT, "description": "A parameter of the address."},
                    "detail": _TEXT,
                    "code": _TEXT,
                },
            },
        },
    },
}
_ALWAYS = {
    "400": "Something in the address or the body is not allowed; `errors` names it.",
    "401": "Nobody is signed in, or the token or password is wrong.",
    "403": "This person, or this token, may not do that.",
    "406": "What is asked for is not what this address answers.",
    "429": "Too often, or too much; `Retry-After` says when.",
    "503": "The database is away or locked, nothing was stored; `Retry-After` says when to try again.",
}
_WITH_A_BODY = {"413": "The body is too large.", "415": "The body must be application/json."}
_OF_A_ROW = {"404": "There is no such thing, or it is somebody else's."}


class TokenScheme(OpenApiAuthenticationExtension):
    """`Authorization: Bearer mm_...`."""

    target_class = "analysis.accounts.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> Schema:
        return {"type": "http", "scheme": "bearer", "description": "A token of yours: mm_r_... reads, mm_w_... writes."}


class PasswordScheme(OpenApiAuthenticationExtension):
    """HTTP Basic."""

    target_class = "analysis.accounts.authentication.PasswordAuthentication"
    name = "basic"

    def get_security_definition(self, auto_schema: Any) -> Schema:
        return {"type": "http", "scheme": "basic"}


class SessionScheme(OpenApiAuthenticationExtension):
    """The cookie of somebody who is signed in to the pages; what changes something needs the CSRF token, too."""

    target_class = "rest_framework.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> Schema:
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}


def only_the_api(endpoints: list[tuple[str, str, str, Any]]) -> list[tuple[str, str, str, Any]]:
    """Not what watchers ask (/readyz, /metrics)."""
    return [endpoint for endpoint in endpoints if endpoint[0].startswith((VERSIONED, *CLASSIC))]


def with_problems(result: Schema, generator: Any, request: Any, public: bool) -> Schema:
    """Add to each operation of version 1 the problems that it may answer."""
    result["components"].setdefault("schemas", {})["Problem"] = _PROBLEM
    for path, operations in result["paths"].items():
        if path.startswith(VERSIONED):
            for operation in operations.values():
                for status, description in _problems(path, operation).items():
                    operation["responses"].setdefault(status, _answer(status, description))
    return result


def _problems(path: str, operation: Schema) -> dict[str, str]:
    body = _WITH_A_BODY if "requestBody" in operation else {}
    return {**_ALWAYS, **body, **(_OF_A_ROW if "{" in path else {})}


def _answer(status: str, description: str) -> Schema:
    answer: Schema = {
        "description": description,
        "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if status in ("429", "503"):
        answer["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
    return answer


@cache
def schema() -> Schema:
    """Describe the API, the same for everybody and as long as this process lives."""
    return dict(SchemaGenerator().get_schema(request=None, public=True))


class SchemaFile(SpectacularAPIView):
    """As YAML, or as JSON to whoever asks for it."""

    permission_classes = (MayRead,)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """Tell what is refused in JSON, whatever form the description was requested in."""
        if response.status_code >= 400:
            request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type
        return super().finalize_response(request, response, *args, **kwargs)

    def _get_schema_response(self, request: Request) -> Response:
        return Response(schema())


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Swagger UI out of its package: nothing is loaded from elsewhere, and no script or style stands in the page."""
    return render(request, "api/docs.html")
