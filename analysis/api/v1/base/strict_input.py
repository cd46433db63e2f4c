"""What a request holds, read strictly: nothing is guessed, and nothing that is not understood is passed over."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.fields import BooleanField, CharField
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from analysis.http.problem_details import Problem, pointer_to
from analysis.http.strict_json import BadJsonError, strict_json
from analysis.models.text import plain_line, plain_text


class StrictJSONParser(BaseParser):
    """The body as JSON: bounded in size and depth, each key once, finite numbers, storable text.

    It reads the request itself. Of a `JSONParser` REST framework reads the body first, which Django bounds for all
    routes alike (DATA_UPLOAD_MAX_MEMORY_SIZE): a limit above that would never apply.
    """

    media_type = "application/json"
    any_text = False
    limit_setting = "API_BODY_MAX_BYTES"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        limit = int(getattr(settings, self.limit_setting))
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise Problem(413, detail=f"The body is larger than {limit:,} bytes.")
        return self.read(body)

    def read(self, body: bytes) -> Any:
        try:
            return strict_json(body, any_text=self.any_text)
        except BadJsonError as error:
            raise Problem(400, detail=str(error), code="parse_error") from error


def body_object(request: Request) -> dict[str, Any]:
    if not isinstance(request.data, dict):
        raise Problem(400, detail="The body must be a JSON object.")
    return dict(request.data)


def validated(serializer: type[Serializer[Any]], data: Any, **options: Any) -> Any:
    """Read data with a serializer. Raises ValidationError, which names each field at fault."""
    body = serializer(data=data, **options)
    body.is_valid(raise_exception=True)
    return body.validated_data


class StrictBody(Serializer[Any]):
    """A body that refuses unknown members, which would otherwise be ignored."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = [str(name)[:80] for name in data if name not in self.fields] if isinstance(data, dict) else []
        if unknown:
            detail = f"unknown member; known members: {', '.join(self.fields)}"
            raise Problem(
                400,
                detail=f"{unknown[0]}: {detail}",
                errors=[{"pointer": pointer_to(name), "detail": detail, "code": "unknown"} for name in unknown],
            )
        return super().to_internal_value(data)


class StrictText(CharField):
    """Printable text, and no number in its place. `lines`: several lines are allowed."""

    def __init__(self, *, lines: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.validators.append(plain_text if lines else plain_line)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class StrictFlag(BooleanField):
    """true or false, and no word for it."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data
