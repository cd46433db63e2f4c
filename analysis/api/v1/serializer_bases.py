"""Parameters of the address as fields of a serializer, which checks and documents them."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.serializers import Serializer

from analysis.http.problem_details import Problem, pointer_to


class Query(Serializer[Any]):
    """The allowed parameters of an address."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(cls().fields)

    @classmethod
    def of(cls, request: Request) -> dict[str, Any]:
        """Check the given parameters. Raises Problem, naming the parameter."""
        given = {name: value for name, value in request.query_params.items() if name in cls.names()}
        query = cls(data=given)
        if not query.is_valid():
            errors = [
                {"parameter": name, "detail": str(detail), "code": detail.code}
                for name, details in query.errors.items()
                for detail in details
            ]
            raise Problem(400, detail="; ".join(f"{e['parameter']}: {e['detail']}" for e in errors), errors=errors)
        return dict(query.validated_data)


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
