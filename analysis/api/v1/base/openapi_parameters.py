"""Parts of the OpenAPI document that views share: headers, filters, settings, further problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, TypeAlias

from django import forms
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema_field, inline_serializer
from rest_framework import serializers

from analysis.api.run_request import REQUESTED_KINDS
from analysis.http.problem_details import CONTENT_TYPE
from analysis.http.query_string import FlagField, StrictQueryForm, WholeNumberField, choices_of
from analysis.models import Run
from engine.estimate.frontier import MAX_LENGTHS
from engine.estimate.largest import LargestOf
from engine.estimate.spec import OWN
from engine.estimate.spec import SETTINGS as OF_ESTIMATES
from engine.estimate.what_to_change import Scope
from engine.ranks.emulation import FEWEST_RANKS, MOST_STARTED
from engine.settings.rank_settings import OF_STARTS, RANKS_MOST
from engine.settings.setting import Setting
from engine.spec import CHOICES, OPTIONAL, RANGES, SETTINGS, VALUE_TYPES, RunSpec

AnyField: TypeAlias = serializers.Field[Any, Any, Any, Any]


class ProblemPartSerializer(serializers.Serializer[Any]):
    """One invalid part of the request."""

    pointer = serializers.CharField(
        required=False, help_text="JSON pointer to a part of the body; empty: the whole body."
    )
    parameter = serializers.CharField(required=False, help_text="Name of the query parameter.")
    detail = serializers.CharField()
    code = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """The errors of a request (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="Message for people.")
    instance = serializers.CharField()
    code = serializers.CharField(help_text="Stable code for programs.")
    # a declared field: the metaclass takes it off the class, where the stubs expect `Serializer.errors`
    errors = ProblemPartSerializer(many=True)  # type: ignore[assignment]
    request_id = serializers.CharField(
        allow_null=True, help_text="X-Request-ID of this response, to quote in a support request."
    )


_SAID = {
    400: "A parameter or a part of the body is invalid; `errors` names it.",
    401: "Credentials are missing, or the token or password is wrong.",
    403: "The person or the token lacks the required right.",
    404: "The object does not exist.",
    406: "The requested format is not available: responses are JSON.",
    409: "The state of the run does not allow it, or the run of this Idempotency-Key was deleted.",
    412: "The run has changed since it was read (If-Match).",
    413: "The body is too large.",
    415: "The body must be application/json.",
    422: "This Idempotency-Key was used for another request.",
    429: "A rate limit or quota is exceeded; `Retry-After` is the number of seconds to wait.",
}


def problems(*statuses: int) -> dict[tuple[int, str], OpenApiResponse]:
    """Describe error responses of a view. `analysis.api.openapi` adds those of every view."""
    return {(status, CONTENT_TYPE): OpenApiResponse(ProblemSerializer, _SAID[status]) for status in statuses}


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


def page_of(name: str, row: Any) -> Any:
    # a field of its own for each: a field takes the name it is bound to last
    links = {link: serializers.URLField(allow_null=True) for link in ("next", "previous")}
    return inline_serializer(name, {**links, "results": row(many=True)})


def all_of(name: str, row: Any, base: Any) -> Any:
    """Everything of one kind that a run has, with the members of `base`, which says where it comes from."""
    described = {"__doc__": "All of one kind that a run has, and where the run comes from."}
    return type(name, (base,), {**described, "run": serializers.IntegerField(), "results": row(many=True)})


def run_body(name: str, *, needs_model: bool = True, asks_size: bool = False) -> Any:
    """Describe the body that asks for a run: the settings of RunSpec, and its place in the queue.

    What is sent is checked by RunSpec itself. `asks_size`: it asks of one `batch_size` whether that fits.
    """
    settings = {field.name: _setting(field, needs_model) for field in fields(RunSpec) if field.name in SETTINGS}
    if asks_size:
        del settings["check_batch_size"]
        low, high = RANGES["check_batch_size"]
        size = serializers.IntegerField(min_value=int(low), max_value=int(high), help_text="Batch size to check.")
        settings = {"batch_size": size, **settings}
    place: dict[str, AnyField] = {
        "kind": serializers.ChoiceField(
            REQUESTED_KINDS, required=False, help_text="Kind of run. Default: measurement."
        ),
        **_own_of_measurements(),
        **_own_of_estimates(),
        **_queue_fields(),
    }
    if asks_size:
        place = {name: field for name, field in place.items() if name not in ("kind", *OWN, *OF_STARTS)}
    return inline_serializer(name, {**settings, **place})


def _own_of_measurements() -> dict[str, AnyField]:
    options: dict[str, dict[str, Any]] = {
        name: {"required": False, "allow_null": True, "help_text": of.description} for name, of in OF_STARTS.items()
    }
    each = serializers.IntegerField(min_value=0)
    return {
        "emulate_ranks": serializers.IntegerField(
            min_value=FEWEST_RANKS, max_value=RANKS_MOST, **options["emulate_ranks"]
        ),
        "rank": serializers.ListField(child=each, max_length=MOST_STARTED, **options["rank"]),
        "compare_speed": serializers.BooleanField(**options["compare_speed"]),
    }


def _own_of_estimates() -> dict[str, AnyField]:
    text = {name: each.description for name, each in OF_ESTIMATES.items()}
    sizes = serializers.IntegerField(min_value=1)
    return {
        "gpu": serializers.CharField(required=False, help_text=text["gpu"]),
        "what_to_change": serializers.ChoiceField(list(Scope), required=False, help_text=text["what_to_change"]),
        "frontier": serializers.ListField(
            child=sizes, max_length=MAX_LENGTHS, required=False, help_text=text["frontier"]
        ),
        "largest": serializers.ChoiceField(list(LargestOf), required=False, help_text=text["largest"]),
    }


def spec_body(name: str, spec: type[Any], own: Mapping[str, Setting]) -> Any:
    shared = {field.name: field for field in fields(RunSpec) if field.name in SETTINGS}
    settings = {
        field.name: _setting(shared[field.name], needs_model=True) if field.name in shared else _own_setting(field, own)
        for field in fields(spec)
    }
    return inline_serializer(name, {**settings, **_queue_fields()})


def _queue_fields() -> dict[str, AnyField]:
    return {
        "device_class": serializers.CharField(
            required=False, help_text="Requested GPU: part of its name, such as A100."
        ),
        "priority": serializers.ChoiceField(Run.Priority.choices, required=False),
        "accepts_shared_device": serializers.BooleanField(required=False),
    }


def _own_setting(field: Field[Any], own: Mapping[str, Setting]) -> AnyField:
    each = own[field.name]
    options: dict[str, Any] = {"required": False, "help_text": each.description}
    if each.choices:
        return serializers.ChoiceField(list(each.choices), **options)
    options["min_value"], options["max_value"] = each.bounds or (None, None)
    if field.default is None:
        return serializers.FloatField(allow_null=True, **options)
    return serializers.IntegerField(**options)


def command_setting(name: str) -> AnyField:
    field = next((field for field in fields(RunSpec) if field.name == name and name in SETTINGS), None)
    return serializers.BooleanField(required=False) if field is None else _setting(field, needs_model=False)


# no enum: a client generated today may request a model that is added later
@extend_schema_field({"type": "string", "examples": list(CHOICES["model"])})
class _ModelName(serializers.CharField):
    """The id of a model."""


@extend_schema_field({"type": ["object", "string", "null"], "additionalProperties": True})
class _Config(serializers.JSONField):
    """The config.json of a model."""


_FIELDS: dict[type, type[AnyField]] = {
    str: serializers.CharField,
    bool: serializers.BooleanField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
}


def _setting(field: Field[Any], needs_model: bool) -> AnyField:
    description = SETTINGS[field.name].description
    options: dict[str, Any] = {"required": needs_model and field.default is MISSING, "help_text": description}
    if field.name == "model":
        return _ModelName(**options)
    if field.name == "config":
        return _Config(allow_null=True, **options)
    if field.name in CHOICES:
        return serializers.ChoiceField(CHOICES[field.name], **options)
    if field.name in RANGES:
        options["min_value"], options["max_value"] = RANGES[field.name]
    return _FIELDS[VALUE_TYPES[field.name]](allow_null=field.name in OPTIONAL, **options)
