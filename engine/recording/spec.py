"""PURE: what is watched: a command, and the device that it sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ..errors import SpecError
from ..program import PROGRAM
from ..settings.spec_checks import given_fields
from ..settings.training_spec import check_device_name
from ..text.masking import masked
from ..trainings.script.spec import check_length, name_of_command, read_command


@dataclass(frozen=True, slots=True)
class WatchSpec:
    """One command to be watched. Raises SpecError, naming the field."""

    command: tuple[str, ...]
    device: str = "auto"

    def __post_init__(self) -> None:
        if not self.command:
            raise SpecError("command", f"is missing: {PROGRAM} watch -- python train.py")
        check_length(self.command)
        check_device_name(self.device)

    @property
    def model(self) -> str:
        return name_of_command(self.command)

    def to_dict(self) -> dict[str, Any]:
        return {"command": masked(self.command), "device": self.device, "model": self.model}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """Read the spec of a result, without what follows from its fields. Raises SpecError."""
        given = given_fields(cls, {name: value for name, value in document.items() if name != "model"})
        if not isinstance(given.get("device", ""), str):
            raise SpecError("device", "must be text")
        return cls(**{**given, "command": read_command(given.get("command", ()))})
