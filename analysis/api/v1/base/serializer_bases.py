"""The common base of body serializers."""

from __future__ import annotations

from typing import Any

from rest_framework.serializers import Serializer

from analysis.http.problem_details import Problem, pointer_to


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
