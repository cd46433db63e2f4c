"""How one setting of a `RunSpec` is described: labels, choices and bounds that every page, form and schema reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """What a setting is for."""

    WORKLOAD = "workload"
    PLACE = "place"
    TRAINING = "training"  # two runs that differ in one of these did not measure the same
    TODAY = "today"
    LIMIT = "limit"
    ASSUMPTION = "assumption"


@dataclass(frozen=True, slots=True)
class Setting:
    """The description of one field of a `RunSpec`.

    `choices` are its values with their labels; `bounds` are inclusive. `hint` is what a form adds to the label, where
    that is not the `description`; None: the form adds nothing. `metavar` names the value on the command line.
    """

    role: Role
    label: str
    description: str
    hint: str | None = None
    choices: Mapping[str, str] | None = None
    bounds: tuple[float, float] | None = None
    metavar: str | None = None
    is_in_form: bool = True

    def describe(self, value: object) -> str:
        """Write "gradient checkpointing", "eval mode", "LoRA rank 16"."""
        if value is True:
            return self.label.lower()
        return f"{self.label} {value}" if isinstance(value, int) else f"{value} {self.label.lower()}"


def setting(role: Role, label: str, description: str, *, default: Any = MISSING, **others: Any) -> Any:
    """Declare a field of a dataclass together with its description."""
    return field(default=default, metadata={"setting": Setting(role, label, description, **others)})
