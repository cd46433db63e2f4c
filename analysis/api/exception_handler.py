"""Converts exceptions to the address's error format. Apart, as DRF's views read the settings, which import `errors`."""

from __future__ import annotations

import re
from typing import Any

from django.core.exceptions import RequestDataTooBig, ValidationError
from django.http import Http404
from rest_framework.exceptions import APIException
from rest_framework.response import Response
from rest_framework.views import exception_handler

from analysis.accounts.quotas import QuotaExceededError
from analysis.http.errors import VERSIONED, BadRequest, error_body
from analysis.http.problem_details import Problem, into_problem, part, pointer_to
from analysis.http.query_string import BadQuery
from engine.errors import SpecError


def api_exception(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Return the response to a view's exception. None: a bug, which Django logs and answers with 500."""
    request = context["request"]
    if request.path.startswith(VERSIONED):
        exc = _as_problem(exc)
        response = exception_handler(exc, context)
        return response and into_problem(response, exc, request)
    classic = BadRequest(str(exc)) if isinstance(exc, SpecError) else exc
    if isinstance(exc, QuotaExceededError):
        classic = _QuotaExceededResponse(str(exc))
    response = exception_handler(classic, context)
    if response is not None:
        response.data = error_body(_text(response.data))
        if isinstance(exc, QuotaExceededError):
            response.headers["Retry-After"] = str(exc.retry_after_seconds)
    return response


_NO_ROW = re.compile(r"No (\w+) matches the given query\.")
"""Django's words for a row that is not there."""


class _QuotaExceededResponse(APIException):
    status_code = 429


def _as_problem(exc: Exception) -> Exception:
    if isinstance(exc, QuotaExceededError):
        detail = part("", str(exc), exc.quota)
        return Problem(
            429, detail=str(exc), code="quota", errors=[detail], headers={"Retry-After": str(exc.retry_after_seconds)}
        )
    if isinstance(exc, SpecError):
        field = exc.field or ""
        message = str(exc).removeprefix(f"{field}: ")
        return Problem(400, detail=str(exc), errors=[part(pointer_to(field), message, exc.code)])
    if isinstance(exc, BadQuery):
        errors = [{"parameter": each.parameter, "detail": each.message, "code": each.code} for each in exc.problems]
        return Problem(400, detail=str(exc), errors=errors)
    if isinstance(exc, ValidationError):
        return Problem(400, detail=" ".join(exc.messages), errors=_of_model(exc))
    if isinstance(exc, RequestDataTooBig):
        return Problem(413, detail="The body is larger than this server accepts.")
    if isinstance(exc, Http404) and (row := _NO_ROW.fullmatch(str(exc))):
        return Http404(f"There is no such {row[1].lower()}.")
    return exc


def _of_model(exc: ValidationError) -> list[dict[str, str]]:
    named = exc.message_dict if hasattr(exc, "error_dict") else {"__all__": exc.messages}
    pointers = {field: "" if field == "__all__" else pointer_to(field) for field in named}
    return [part(pointers[field], message) for field, messages in named.items() for message in messages]


def _text(data: Any) -> str:
    if isinstance(data, dict):
        parts = [_text(value) if key == "detail" else f"{key}: {_text(value)}" for key, value in data.items()]
        return "; ".join(parts)
    return "; ".join(map(_text, data)) if isinstance(data, list) else str(data)
