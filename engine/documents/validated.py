"""The document of a validation, read back."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..results.result import DeviceFacts
from ..spec import SCHEMA
from ..validation.verdict import Check, StepFigures, Verdict
from .stored import StoredSpec, WithoutSizes


@dataclass(frozen=True, slots=True)
class Validated(WithoutSizes):
    """A `ValidationResult` as it was stored, in the words that it was stored with."""

    spec: StoredSpec
    device: DeviceFacts
    checks: tuple[Check, ...]
    steps: dict[str, StepFigures]
    environment: dict[str, Any]
    total_seconds: float
    verdict: Verdict
    verdict_text: str

    def to_dict(self) -> dict[str, Any]:
        checks = [{**asdict(check), "text": check.text} for check in self.checks]
        return {"schema": SCHEMA, **asdict(self), "device": self.device.to_dict(), "checks": checks}
