"""The OpenAPI description: what is added to the views' own, such as the problems of every URL; and its page."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.authentication import BasicScheme, SessionScheme
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.permissions import MayRead
from analysis.api.result_schema import advice_components, engine_components
from analysis.api.run_bodies import body_components
from analysis.api.v1.base.openapi_parameters import problem

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
        "next": {"type": "integer", "description": "Of events_missing: the event that is expected next."},
        "request_id": {**_MAYBE_TEXT, "description": "X-Request-ID of this response, to quote in a support request."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["detail", "code"],
                "properties": {
                    "pointer": {**_TEXT, "description": "JSON pointer to a part of the body; empty: the whole body."},
                    "parameter": {**_TEXT, "description": "Name of the query parameter."},
                    "detail": _TEXT,
                    "code": _TEXT,
                    "field": {
                        **_TEXT,
                        "description": "Of a document that no machine can have measured: the field, with dots.",
                    },
                    "claimed": {"description": "Its value in the document."},
                    "allowed": {"description": "The value or bound that the rest of the document allows."},
                },
            },
        },
    },
}
_ALWAYS, _OF_A_CHANGE, _OF_A_ROW = (400, 401, 403, 406, 429, 503), (413, 415), (404,)


class TokenScheme(OpenApiAuthenticationExtension):
    """`Authorization: Bearer mm_...`."""

    target_class = "analysis.accounts.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> Schema:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API token: mm_r_... reads, mm_w_... also writes, mm_p_... only reports runs.",
        }


class PasswordScheme(BasicScheme):
    target_class, name, priority = "analysis.accounts.authentication.PasswordAuthentication", "basic", 0


class LoginScheme(SessionScheme):
    """The session cookie of a login to the pages; a change also needs the CSRF token."""

    name, priority = "session", 0


def exclude_monitoring(endpoints: list[tuple[str, str, str, Any]]) -> list[tuple[str, str, str, Any]]:
    """Leave out the endpoints of monitoring (/readyz, /metrics)."""
    return [endpoint for endpoint in endpoints if endpoint[0].startswith((VERSIONED, *CLASSIC))]


def with_problems(result: Schema, generator: Any, request: Any, public: bool) -> Schema:
    """Add a summary to each operation, for the page's list, and the common problems to operations of version 1."""
    bodies = body_components()
    described = {"Problem": _PROBLEM, **engine_components(), **advice_components(), **bodies}
    result["components"].setdefault("schemas", {}).update(described)
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            operation.setdefault("summary", first_sentence(operation.get("description", "")))
            if (asked := operation.get("requestBody")) and "required" in bodies.get(_name_in(asked), ()):
                asked["required"] = True
            if path.startswith(VERSIONED):
                body, row = _OF_A_CHANGE if method in ("post", "patch") else (), _OF_A_ROW if "{" in path else ()
                for status in (*_ALWAYS, *body, *row):
                    operation["responses"].setdefault(str(status), problem(status))
    return result


def _name_in(body: Schema) -> str:
    """Return the name of the component that describes a body, if one does."""
    [content] = body["content"].values()
    return str(content["schema"].get("$ref", "")).rpartition("/")[2]


def first_sentence(text: str) -> str:
    """Return it without code marks: a summary is plain text."""
    return " ".join(text.split()).partition(". ")[0].removesuffix(".").replace("`", "")


@cache
def schema() -> Schema:
    """Return the description of the API, the same for all clients and cached in this process."""
    return dict(SchemaGenerator().get_schema(request=None, public=True))


class SchemaFile(SpectacularAPIView):
    """The description as YAML or JSON, by the Accept header."""

    permission_classes = (MayRead,)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """Answer errors in JSON, whatever format was requested."""
        if response.status_code >= 400:
            request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type
        return super().finalize_response(request, response, *args, **kwargs)

    def _get_schema_response(self, request: Request) -> Response:
        return Response(schema())


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Serve Swagger UI from its package: nothing is loaded from other hosts, and the page has no inline scripts."""
    return render(request, "api/docs.html")
