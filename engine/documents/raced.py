"""The document of a race, read back, with the rows of its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..faster.result import AtSize, FasterResult, Row, order_of
from ..race.lines import Lines, distinct
from ..race.text import describe_numbers, speed_text
from ..race.variants import CHANGES, label_of_entry
from .stored import StoredSpec, WithoutSizes


@dataclass(frozen=True, slots=True)
class RaceRow:
    """One row of the table, at today's batch size. `is_on_top`: not against today's, but both with other changes."""

    row: Row
    speed: str
    numbers: str
    is_on_top: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Raced(FasterResult, WithoutSizes):
    """A `FasterResult` as it is stored."""

    spec: StoredSpec  # type: ignore[assignment]  # has the same members

    is_of_command: ClassVar[bool] = False
    """Whether whole starts of a command raced, and no blocks of steps."""
    sentences: ClassVar[tuple[str, ...]] = ()

    def check(self) -> None:
        named = {*self.chosen, *(name for row in self.rows for name in row.entry)}
        if unknown := named - CHANGES.keys():
            raise ValueError(f"there is no change {min(unknown)!r}")

    @property
    def recommended(self) -> tuple[str, ...]:
        """The labels of the changes that are recommended."""
        return tuple(label_of_entry((name,)) for name in self.chosen)

    @property
    def table(self) -> list[RaceRow]:
        return [
            RaceRow(row, speed_text(row.speed, row.rough_speed, self.at_today), describe_numbers(row.numbers))
            for row in order_of(self.rows)
        ]

    @property
    def table_of_sizes(self) -> list[tuple[AtSize, str, str]]:
        """The settings at the largest batch size that keeps the reserve, their speed, and why they have none."""
        return [
            (
                at,
                speed_text(at.speed, at.rough_speed, self.at_own_size),
                at.reason or ("" if at.batch_size > self.batch_size else "not larger than today’s: not raced"),
            )
            for at in self.sizes
            if at.batch_size or at.reason
        ]

    @property
    def pasted(self) -> tuple[Lines, ...]:
        return distinct(self.lines)

    @property
    def timed_rounds(self) -> int:
        return sum(each.failed is None for each in (*self.rounds, *self.rounds_of_sizes))
