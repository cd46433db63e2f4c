"""The document of a race of somebody's own script, read back."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..spec import SCHEMA
from ..tune.faster.result import OwnFindings
from .stored import StoredSpec, WithoutSizes


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRaced(OwnFindings, WithoutSizes):
    """An `OwnRaceResult` as it was stored, with the goal and the headline that it was stored with."""

    spec: StoredSpec
    goal: str
    headline: str

    def to_dict(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self), "device": self.device.to_dict()}
