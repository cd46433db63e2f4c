"""Describes a setting of a `RunSpec`: label, choices and bounds, which every page, form and schema reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple


class Role(StrEnum):
    WORKLOAD = "workload"
    PLACE = "place"
    TRAINING = "training"  # two runs that differ in one of these did not measure the same
    TODAY = "today"
    LIMIT = "limit"
    ASSUMPTION = "assumption"
    ESTIMATE = "estimate"  # what is estimated
    ORIGIN = "origin"  # it says where others are from, and changes no figure by itself


class TextValues(NamedTuple):
    """Values beside the choices of a setting that people write themselves; `allowed` says in an error which."""

    pattern: re.Pattern[str]
    allowed: str
    max_length: int

    def has(self, value: str) -> bool:
        return len(value) <= self.max_length and self.pattern.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class Setting:
    """The description of one field of a `RunSpec`.

    `choices` are its values with their labels, and `text_values` those that may be written beside them; `bounds` are
    inclusive. The first sentence of the `description` is the help on the command line, and says enough alone. `hint` is
    what a form adds to the label, where that is not the `description`; None: the form adds nothing.

    `option` is its option on the command line, where that is not the field's name. `metavar` names the value, where it
    is not N (a whole number), SIZE (bytes) or NAME.
    """

    role: Role
    label: str
    description: str
    hint: str | None = None
    choices: Mapping[str, str] | None = None
    text_values: TextValues | None = None
    bounds: tuple[float, float] | None = None
    metavar: str | None = None
    is_in_form: bool = True
    option: str | None = None

    @property
    def summary(self) -> str:
        return self.description.partition(". ")[0].removesuffix(".")

    @property
    def when_left_out(self) -> str | None:
        """Return what the description says of a setting that is left out, such as "the model's own"."""
        return self.description.partition("Left out: ")[2].removesuffix(".") or None

    @property
    def pattern(self) -> str | None:
        if self.text_values is None:
            return None
        return f"^(?:{'|'.join([*map(re.escape, self.choices or ()), self.text_values.pattern.pattern])})$"

    def text_of(self, value: str) -> str:
        return (self.choices or {}).get(value, value)

    def describe(self, value: object) -> str:
        """Write "gradient checkpointing", "EMA of the weights", "eval mode", "frozen blocks 2", "LoRA rank 16"."""
        is_name = any(letter.isupper() for letter in self.label.partition(" ")[0][1:])  # such as EMA and LoRA
        label = self.label if is_name else f"{self.label[:1].lower()}{self.label[1:]}"
        if value is True:
            return label
        return f"{label} {value}" if is_name or not isinstance(value, str) else f"{value} {label}"


def setting(role: Role, label: str, description: str, *, default: Any = None, **others: Any) -> Any:
    return field(default=default, metadata={"setting": Setting(role, label, description, **others)})


training_setting = partial(setting, Role.TRAINING)
