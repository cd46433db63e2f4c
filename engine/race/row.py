"""PURE: the data of one line of a race's table: what a change does to speed, memory and numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from ..facts.intervals import Interval
from .field import TODAY, Entry
from .numbers import UNKNOWN, Numbers

FAILED = "it failed: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is known of one change, or of several together, at today's batch size.

    `speed` is how many times as fast the training was with it, from all rounds that timed both; `rough_speed` stands in
    its place where rounds are too few, or too disturbed, for an interval. `memory_bytes` is the peak. After
    `pays_after_steps` compiling is made up for. `reason`: why it is not recommended, where its speed does not say so.
    """

    label: str
    speed: Interval | None = None
    rough_speed: float | None = None
    memory_bytes: int | None = None
    numbers: Numbers | None = None
    largest_batch_size: int | None = None
    compile_seconds: float | None = None
    pays_after_steps: int | None = None
    reason: str | None = None
    failure: str | None = None
    """What a block or a start of it ended with, in the words of its machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Figures):
    """One change, or several together; without any it is today's training."""

    entry: Entry
    kind: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    numbers: Numbers = UNKNOWN
    samples_per_second: float | None = None

    @property
    def place(self) -> tuple[bool, float]:
        """Return what tables are sorted by: today's training first, then the fastest."""
        speed = self.speed.value if self.speed is not None else self.rough_speed or 0.0
        return self.entry != TODAY, -speed


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantRow(Figures):
    """One change of a script. Where `beside` names changes, those were made in both. `lines` are pasted."""

    name: str
    beside: Entry = ()
    draws_elsewhere: bool = False
    """Whether the data's rows, or dropout, draw other random numbers with it: losses cannot be compared."""
    lines: str = ""

    @property
    def found_failure(self) -> str | None:
        """Return the failure, also from the reason of a row of an earlier build."""
        is_said = self.failure is None and (self.reason or "").startswith(FAILED)
        return (self.reason or "").removeprefix(FAILED) if is_said else self.failure

    def failed(self, failure: str) -> Self:
        return replace(self, failure=failure, reason=f"{FAILED}{failure}")

    def as_row(self, kind: str) -> Row:
        figures = {each.name: getattr(self, each.name) for each in fields(Figures)}
        return Row(**figures | {"entry": (self.name,), "kind": kind, "numbers": self.numbers or UNKNOWN})
