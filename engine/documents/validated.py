"""The document of a validation, read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ..validation.verdict import ValidationResult
from .stored import StoredSpec, WithoutSizes, from_document


@dataclass(frozen=True, slots=True)
class Validated(ValidationResult, WithoutSizes):
    """A `ValidationResult` as it is stored."""

    spec: StoredSpec  # type: ignore[assignment]  # has the same members

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read the document of any version. Raises ValueError, which names the member that is not as it should be."""
        made = from_document(cls, document)
        if "check" not in made.spec:
            raise ValueError("spec.check is missing")
        return made
