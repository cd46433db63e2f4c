"""The document of a validation, read back."""

from __future__ import annotations

from dataclasses import dataclass

from ..validation.verdict import ValidationResult
from .stored import StoredSpec, WithoutSizes


@dataclass(frozen=True, slots=True)
class Validated(ValidationResult, WithoutSizes):
    spec: StoredSpec  # type: ignore[assignment]  # has the same members

    def check(self) -> None:
        if "check" not in self.spec:
            raise ValueError("spec.check is missing")
