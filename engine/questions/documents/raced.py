"""The documents of races, of settings and of somebody's own script, read back, with the rows of their tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ...race.field import TODAY, RaceVerdict
from ...race.lines import TORCH, Lines, distinct
from ...race.numbers import UNKNOWN, judge_difference
from ...race.row import Row
from ...race.text import describe_numbers, speed_text
from ...race.variants import NotTried
from ...trainings.script.faster.answer import is_excused
from ...trainings.script.faster.result import OwnRaceResult
from ...trainings.script.faster.variants import BY_NAME
from ..faster.result import AtSize, FasterResult
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
    spec: StoredSpec  # type: ignore[assignment]  # has the same members

    is_of_command: ClassVar[bool] = False
    """Whether whole starts of a command raced, and no blocks of steps."""
    sentences: ClassVar[tuple[str, ...]] = ()
    failed: ClassVar[frozenset[str]] = frozenset()

    def check(self) -> None:
        self.check_names(name for row in self.rows for name in row.entry)

    @property
    def table(self) -> list[RaceRow]:
        return sorted((_shown(row, self.at_today) for row in self.rows), key=lambda each: each.row.place)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRaced(OwnRaceResult, WithoutSizes):
    spec: StoredSpec  # type: ignore[assignment]  # has the same members

    is_of_command: ClassVar[bool] = True
    table_of_sizes: ClassVar[tuple[Any, ...]] = ()

    def check(self) -> None:
        self.check_names(name for row in self.rows for name in (row.name, *row.beside))
        _ = self.known_facts.is_before_ampere  # raises, too

    @property
    def table(self) -> list[RaceRow]:
        return sorted(self._rows(), key=lambda each: each.row.place)

    def _rows(self) -> Iterator[RaceRow]:
        """Yield today's row, the started changes' rows, and the chosen changes together if they are several."""
        noise = self.today.loss_noise
        own = UNKNOWN if noise is None else judge_difference(noise, noise, 0.0)
        yield _shown(Row(entry=TODAY, label="today", memory_bytes=self.today_bytes, numbers=own), self.verdict)
        for row in self.rows:
            if row.memory_bytes is not None:
                beside = " + ".join(BY_NAME[name].label for name in row.beside)
                own_row = row.as_row(f"with {beside} in both" if beside else "")
                elsewhere, is_on_top = row.draws_elsewhere, bool(beside)
                yield _shown(own_row, self.verdict, draws_elsewhere=elsewhere, is_on_top=is_on_top)
        if len(self.chosen) > 1:
            chosen = Row(
                entry=self.chosen,
                label=" + ".join(self.recommended),
                kind="all that is recommended, against today’s script",
                speed=self.found_gain,
                memory_bytes=self.chosen_memory_bytes,
                numbers=self.chosen_numbers or UNKNOWN,
            )
            elsewhere = is_excused(self.chosen, chosen.numbers, self.known_facts)
            yield _shown(chosen, self.verdict, draws_elsewhere=elsewhere)

    @property
    def not_tried(self) -> list[NotTried]:
        left_out = [row for row in self.rows if row.memory_bytes is None]
        return [NotTried(row.name, row.label, row.reason or "the race ended before") for row in left_out]

    @property
    def failed(self) -> frozenset[str]:
        """Return the names of those that failed in a start."""
        return frozenset(row.name for row in self.rows if row.found_failure is not None)

    @property
    def pasted(self) -> list[Lines]:
        """The lines, written from what the hook noted, and not taken from the document."""
        facts, savers = self.known_facts, tuple(row.name for row in self.savers)
        shown = []
        for title, names in (("In your script", self.chosen), ("In your script, for less memory", savers)):
            chosen = [BY_NAME[row.name] for row in self.rows if row.name in names]
            if lines := tuple(line for each in chosen for line in each.lines_for(facts).splitlines()):
                shown.append(Lines(TORCH, title, lines))
        return shown


AnyRace = Raced | OwnRaced


def _shown(row: Row, verdict: RaceVerdict, *, draws_elsewhere: bool = False, is_on_top: bool = False) -> RaceRow:
    numbers = describe_numbers(row.numbers, draws_elsewhere=draws_elsewhere)
    return RaceRow(row, speed_text(row.speed, row.rough_speed, verdict), numbers, is_on_top)
