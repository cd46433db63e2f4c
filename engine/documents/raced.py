"""The document of a race, read back."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..faster.result import Findings
from ..spec import SCHEMA
from .stored import StoredSpec, WithoutSizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Raced(Findings, WithoutSizes):
    """A `FasterResult` as it was stored, with the headline that it was stored with."""

    spec: StoredSpec
    headline: str

    def to_dict(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self), "device": self.device.to_dict()}
