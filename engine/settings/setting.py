"""Describes a setting of a `RunSpec`: label, choices and bounds, which every page, form and schema reads."""

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

    `choices` are its values with their labels; `bounds` are inclusive. The first sentence of the `description` is the
    help on the command line, and says enough alone. `hint` is what a form adds to the label, where that is not the
    `description`; None: the form adds nothing.

    `option` is its option on the command line, where that is not the field's name, and `metavar` names the value.
    `is_rare`: only `--help-all` shows it.
    """

    role: Role
    label: str
    description: str
    hint: str | None = None
    choices: Mapping[str, str] | None = None
    bounds: tuple[float, float] | None = None
    metavar: str | None = None
    is_in_form: bool = True
    option: str | None = None
    is_rare: bool = False

    @property
    def summary(self) -> str:
        """Return the first sentence of the description, without its full stop."""
        return self.description.partition(". ")[0].removesuffix(".")

    @property
    def when_left_out(self) -> str | None:
        """Return what the description says of a setting that is left out, such as "the model's own"."""
        return self.description.partition("Left out: ")[2].removesuffix(".") or None

    def describe(self, value: object) -> str:
        """Write "gradient checkpointing", "EMA of the weights", "eval mode", "LoRA rank 16"."""
        if value is True:
            return self.label if self.label[:2].isupper() else f"{self.label[:1].lower()}{self.label[1:]}"
        return f"{self.label} {value}" if isinstance(value, int) else f"{value} {self.label.lower()}"


def setting(role: Role, label: str, description: str, *, default: Any = MISSING, **others: Any) -> Any:
    """Declare a field of a dataclass together with its description."""
    return field(default=default, metadata={"setting": Setting(role, label, description, **others)})
