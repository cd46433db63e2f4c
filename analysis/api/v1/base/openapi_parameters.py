"""How views are described in the OpenAPI document: by address and query form, and by parts that views share."""

from __future__ import annotations

from typing import Any

from django import forms
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, inline_serializer
from rest_framework import serializers

from analysis.api.v1.base.views import StrictView
from analysis.http.errors import VERSIONED
from analysis.http.problem_details import CONTENT_TYPE
from analysis.http.query_string import FlagField, StrictQueryForm, WholeNumberField, choices_of

PROBLEM = {"$ref": "#/components/schemas/Problem"}


_PROBLEMS = {
    400: "A parameter or a part of the body is invalid; `errors` names it.",
    401: "Credentials are missing, or the token or password is wrong.",
    403: "The person or the token lacks the required right.",
    404: "The object does not exist, or is another person's.",
    406: "The requested format is not available.",
    409: "The state of the run does not allow it, or the run of this Idempotency-Key was deleted.",
    412: "The run has changed since it was read (If-Match).",
    413: "The body is too large.",
    415: "The body must be application/json.",
    422: "This Idempotency-Key was used for another request.",
    429: "A rate limit or quota is exceeded; `Retry-After` is the number of seconds to wait.",
    503: "The database is unavailable and nothing was stored; `Retry-After` is the number of seconds to wait.",
}


def problem(status: int) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": _PROBLEMS[status], "content": {CONTENT_TYPE: {"schema": PROBLEM}}}
    if status in (429, 503):
        answer["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
    return answer


def problems(*statuses: int) -> dict[tuple[int, str], OpenApiResponse]:
    """Describe error responses of a view. `analysis.api.openapi` adds those of every view."""
    return {(status, CONTENT_TYPE): OpenApiResponse(PROBLEM, _PROBLEMS[status]) for status in statuses}


def _header(name: str, description: str, *, status: list[int], kind: Any = str) -> OpenApiParameter:
    return OpenApiParameter(name, kind, OpenApiParameter.HEADER, description=description, response=status)


LOCATION = _header("Location", "URL of the run.", status=[202])
RETRY_AFTER = _header(
    "Retry-After", "Number of seconds to wait before the next request.", status=[200, 202, 429], kind=int
)
REPLAYED = _header("Idempotent-Replayed", "true: an earlier request with this key stored the run.", status=[202])
ETAG = _header("ETag", "ETag of this response, for If-None-Match and If-Match.", status=[200, 304])
KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "maxLength": 255, "pattern": "^[ -~]+$"},
    OpenApiParameter.HEADER,
    description="Key of this request. The same key and body within 24 hours do not store a second run.",
)
DOCUMENT_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="SHA-256 of the body in hexadecimal digits. A body with another digest is refused with 400.",
)
IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description="Makes the change only if the run still has this ETag."
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="Answers 304 if the run still has this ETag."
)
ACCEPTED = [KEY, LOCATION, RETRY_AFTER, REPLAYED]


ANY_OBJECTS = {"type": "array", "items": {"type": "object", "additionalProperties": True}}


def parameters_of(form: type[StrictQueryForm]) -> list[OpenApiParameter]:
    return [_parameter(name, field, many=name in form.repeatable) for name, field in form.base_fields.items()]


def _parameter(name: str, field: forms.Field, *, many: bool) -> OpenApiParameter:
    schema: dict[str, Any] = {"type": next(kind for base, kind in _QUERY_TYPES.items() if isinstance(field, base))}
    if isinstance(field, forms.ModelChoiceField) and field.to_field_name is None:
        schema["type"] = "integer"
    if isinstance(field, (WholeNumberField, forms.FloatField)):
        schema |= {"minimum": field.min_value, "maximum": field.max_value}
    if isinstance(field, forms.CharField):
        schema |= {"minLength": 1, "maxLength": field.max_length}
    described = (field.label and f"{field.label}.", field.help_text)
    schema |= {
        "enum": choices_of(field) or None,
        "format": next((text for base, text in _QUERY_FORMATS.items() if isinstance(field, base)), None),
        # a choice without a name is made by leaving the parameter out: generators refuse a default outside the enum
        "default": None if field.initial == "" else field.initial,
    }
    schema = {key: value for key, value in schema.items() if value is not None}
    return OpenApiParameter(
        name,
        {"type": "array", "items": schema} if many else schema,
        required=field.required,
        description=" ".join(str(text) for text in described if text),
    )


_QUERY_TYPES: dict[type[forms.Field], str] = {
    FlagField: "boolean",
    WholeNumberField: "integer",
    forms.FloatField: "number",
    forms.Field: "string",
}
_QUERY_FORMATS = {forms.DateField: "date", forms.DateTimeField: "date-time"}


def listed(name: str, row: Any) -> Any:
    return inline_serializer(name, {"results": row(many=True)})


def page_of(name: str, row: Any) -> Any:
    # a field of its own for each: a field takes the name it is bound to last
    links = {link: serializers.URLField(allow_null=True) for link in ("next", "previous")}
    return inline_serializer(name, {**links, "results": row(many=True)})


def all_of(name: str, row: Any, base: Any) -> Any:
    """Describe all rows of one kind of a run, with `base`, which says where the run comes from."""
    described = {"__doc__": "All of one kind that a run has, and where the run comes from."}
    return type(name, (base,), {**described, "run": serializers.IntegerField(), "results": row(many=True)})


def body(name: str) -> dict[str, Any]:
    return {"application/json": {"$ref": f"#/components/schemas/{name}"}}


_TAGS = {
    **dict.fromkeys(("models", "settings", "gpus"), "catalogue"),
    **dict.fromkeys(("compare", "matrix", "trends"), "comparison"),
    **{"devices": "fleet", "fits": "recommendation", "results": "reports", "subscriptions": "notifications"},
}
"""Tags that are not the first part of the address."""
_ON_LIST = {"GET": "list", "POST": "create"}
_ON_ROW = {"GET": "retrieve", "PATCH": "update", "DELETE": "delete"}


class ViewSchema(AutoSchema):
    """Names an operation `runs_list`, `runs_retrieve` or `runs_cancel`; a decorator may say otherwise."""

    def get_tags(self) -> list[str]:
        if not self.path.startswith(VERSIONED):
            return ["classic"]
        first = self._tokenize_path()[0]
        return [_TAGS.get(first, first.replace("-", " "))]

    def get_operation_id(self) -> str:
        if not self.path.startswith(VERSIONED):
            return self.path.removeprefix("/")
        names = [part.replace("-", "_").replace(".", "_") for part in self._tokenize_path()]
        actions = _ON_ROW if self.path.endswith("}/") else _ON_LIST
        return "_".join((names[0], names[-1] if len(names) > 1 else actions[self.method]))

    def get_override_parameters(self) -> list[Any]:
        return parameters_of(self.view.form) if self.method == "GET" and isinstance(self.view, StrictView) else []
