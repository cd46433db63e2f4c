"""Errors as RFC 9457 problem details: the form of all errors under /api/."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, JsonResponse
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.response import Response

CONTENT_TYPE = "application/problem+json"

_CODES = {
    400: "invalid",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    500: "internal",
    503: "unavailable",
}
_NOT_A_FIELD = "non_field_errors"


class Problem(APIException):
    """An error response; `errors` name parts of the request (`pointer`, `parameter`), `members` are more fields."""

    def __init__(
        self,
        status: int,
        title: str = "",
        detail: str = "",
        code: str = "",
        errors: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        self.status_code = status
        self.title = title or HTTPStatus(status).phrase
        self.code = code or _CODES.get(status, "error")
        self.errors = list(errors)
        self.headers = dict(headers or {})
        self.members = dict(members or {})
        super().__init__(detail or self.title, self.code)


def bad_field(field: str, detail: str, code: str = "invalid") -> Problem:
    return Problem(400, detail=f"{field}: {detail}", errors=[part(pointer_to(field), detail, code)])


def bad_parameter(name: str, detail: str, code: str = "invalid") -> Problem:
    return Problem(400, detail=f"{name}: {detail}", errors=[{"parameter": name, "detail": detail, "code": code}])


def into_problem(response: Response, exc: Exception, request: Any) -> Response:
    problem = exc if isinstance(exc, Problem) else _problem_of_drf(exc, response)
    response.data = _body(request, problem)
    response.content_type = CONTENT_TYPE
    for name, value in problem.headers.items():
        response.headers[name] = value
    return response


def problem_response(request: HttpRequest, status: int, detail: str = "", code: str = "") -> JsonResponse:
    """Return a problem where no view answers: an unknown address, a bug."""
    body = _body(request, Problem(status, detail=detail, code=code))
    return JsonResponse(body, status=status, content_type=CONTENT_TYPE)


def part(pointer: str, detail: str, code: str = "invalid") -> dict[str, str]:
    return {"pointer": pointer, "detail": detail, "code": code}


def pointer_to(*path: object) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _problem_of_drf(exc: Exception, response: Response) -> Problem:
    status = response.status_code
    if isinstance(exc, ValidationError):
        errors = list(_flat(exc.detail))
        return Problem(status, detail="; ".join(_line(error) for error in errors), errors=errors)
    detail = response.data.get("detail") if isinstance(response.data, dict) else None
    return Problem(status, detail=str(detail or ""), code=getattr(detail, "code", ""))


def _flat(detail: Any, *path: object) -> Iterator[dict[str, str]]:
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            yield from _flat(value, *path, *(() if key == _NOT_A_FIELD else (key,)))
    elif isinstance(detail, list):
        for place, value in enumerate(detail):
            yield from _flat(value, *path, *(() if isinstance(value, str) else (place,)))
    else:
        yield part(pointer_to(*path), str(detail), getattr(detail, "code", "") or "invalid")


def _line(error: Mapping[str, str]) -> str:
    name = error["pointer"].removeprefix("/")
    return f"{name}: {error['detail']}" if name else error["detail"]


def _body(request: Any, problem: Problem) -> dict[str, Any]:
    return {
        "type": "about:blank",
        "title": problem.title,
        "status": problem.status_code,
        "detail": str(problem.detail),
        "instance": request.path,
        "code": problem.code,
        "errors": problem.errors,
        "request_id": getattr(request, "request_id", None),
        **problem.members,
    }
