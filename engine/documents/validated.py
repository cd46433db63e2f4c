"""The document of a validation, read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from ..results.result import DeviceFacts, Probe
from ..spec import SCHEMA
from ..validation.verdict import Check, StepFigures, Verdict
from .stored import StoredSpec, from_document


@dataclass(frozen=True, slots=True)
class Validated:
    """A `ValidationResult` as it was stored, in the words that it was stored with."""

    spec: StoredSpec
    device: DeviceFacts
    checks: tuple[Check, ...]
    steps: dict[str, StepFigures]
    environment: dict[str, Any]
    total_seconds: float
    verdict: Verdict
    verdict_text: str

    probes: ClassVar[tuple[Probe, ...]] = ()
    """It tries no batch size."""
    what_to_change: ClassVar[None] = None

    def recorded_facts(self) -> dict[str, Any]:
        """Return what is known of the device and the software."""
        return {"device_name": self.device.name, "capacity_bytes": self.device.capacity_bytes, **self.environment}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read the document of any version. Raises ValueError, which names the member that is not as it should be."""
        return from_document(cls, document)

    def to_dict(self) -> dict[str, Any]:
        checks = [{**asdict(check), "text": check.text} for check in self.checks]
        return {"schema": SCHEMA, **asdict(self), "device": self.device.to_dict(), "checks": checks}
