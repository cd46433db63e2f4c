"""What a worker answers of the losses of a few steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from ..text.from_json import from_json
from .result import Outcome


@dataclass(frozen=True, slots=True)
class Losses:
    """The loss of each step, or why there is none."""

    outcome: Outcome
    losses: tuple[float, ...] = ()
    error_type: str | None = None
    error_message: str | None = None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return from_json(cls, data)
