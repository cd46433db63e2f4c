"""The small label of a state or a verdict, which lists and pages show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chip:
    """A state as a small label with an icon, so that it does not depend on colour."""

    icon: str
    word: str
    css_class: str
