"""What a request holds, read strictly: nothing is guessed, and nothing that is not understood is passed over."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.fields import BooleanField, CharField
from rest_framework.parsers import JSONParser
from rest_framework.request import Request

from analysis.http.problem_details import Problem, bad_parameter
from analysis.http.strict_json import BadJsonError, strict_json

_NUL = "\x00"


class StrictQuery:
    """Mixin of views: parameters that are not named here are a 400, or a typo would read everything.

    Only reading takes parameters. Those of the view's pages are added by themselves.
    """

    query_parameters: tuple[str, ...] = ()
    repeatable_parameters: tuple[str, ...] = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)  # type: ignore[misc]
        if not hasattr(self, str(request.method).lower()):
            return  # a 405, whatever else is wrong
        known = self._parameters() if request.method in ("GET", "HEAD") else ()
        for name, values in request.query_params.lists():
            if name not in known:
                raise bad_parameter(name[:80], f"there is no such parameter here; {_offer(known)}", "unknown")
            if len(values) > 1 and name not in self.repeatable_parameters:
                raise bad_parameter(name, f"given {len(values)} times; it takes one value", "repeated")
            if "" in values:  # a script whose variable is not set must not read everything
                raise bad_parameter(name, "is empty; give a value, or leave it out", "blank")
            if any(_NUL in value for value in values):
                raise bad_parameter(name, "must not hold a NUL character")

    def _parameters(self) -> tuple[str, ...]:
        paged = getattr(getattr(self, "paginator", None), "query_parameters", ())
        return (*self.query_parameters, *paged)


class StrictJSONParser(JSONParser):
    """The body as JSON: bounded in size and depth, each key once, numbers that are finite, text that can be stored."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        limit = settings.API_BODY_MAX_BYTES
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise Problem(413, detail=f"The body is larger than {limit:,} bytes.")
        try:
            return strict_json(body)
        except BadJsonError as error:
            raise Problem(400, detail=str(error), code="parse_error") from error


def body_object(request: Request) -> dict[str, Any]:
    """The body as an object; no body is an empty one."""
    if not isinstance(request.data, dict):
        raise Problem(400, detail="The body must be a JSON object.")
    return dict(request.data)


def whole_number(request: Request, name: str, default: int, *, minimum: int, maximum: int) -> int:
    """A parameter of the address."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and minimum <= int(text) <= maximum):
        raise bad_parameter(name, f"must be a whole number from {minimum:,} to {maximum:,}")
    return int(text)


def _offer(known: tuple[str, ...]) -> str:
    return f"there are: {', '.join(known)}" if known else "none is taken"


class StrictText(CharField):
    """Text, and no number that looks like it."""

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
