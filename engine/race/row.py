"""PURE: the data of one line of a race's table: what a change does to speed, memory and numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ..results.intervals import Interval
from .field import Entry
from .numbers import Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantRow:
    """One change. `reason` says why it is not recommended, where that is not its speed.

    `speed` is how many times as fast the training was with it, as without; where `beside` names changes, those were
    made in both. `memory_bytes` is the peak, at today's batch size or at `largest_batch_size`. `lines` are pasted.
    """

    name: str
    label: str
    reason: str | None = None
    speed: Interval | None = None
    rough_speed: float | None = None
    """Stands in its place where rounds are too few, or too disturbed, for an interval."""
    beside: Entry = ()
    memory_bytes: int | None = None
    largest_batch_size: int | None = None
    numbers: Numbers | None = None
    draws_elsewhere: bool = False
    """Whether the data's rows, or dropout, draw other random numbers with it: losses cannot be compared."""
    compile_seconds: float | None = None
    pays_after_steps: int | None = None
    lines: str = ""
