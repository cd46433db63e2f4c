"""The document of a race of somebody's own script, read back, with the rows of its table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ..faster.result import Row, order_of
from ..race.field import TODAY, Entry
from ..race.lines import TORCH, Lines
from ..race.numbers import UNKNOWN, judge_difference
from ..race.row import VariantRow
from ..race.text import describe_numbers, speed_text
from ..race.variants import NotTried
from ..tune.faster.answer import is_excused
from ..tune.faster.result import OwnRaceResult
from ..tune.faster.variants import BY_NAME
from .raced import RaceRow
from .stored import StoredSpec, WithoutSizes


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRaced(OwnRaceResult, WithoutSizes):
    """An `OwnRaceResult` as it is stored."""

    spec: StoredSpec  # type: ignore[assignment]  # has the same members

    is_of_command: ClassVar[bool] = True
    table_of_sizes: ClassVar[tuple[Any, ...]] = ()

    def check(self) -> None:
        named = {*self.chosen, *(name for row in self.rows for name in (row.name, *row.beside))}
        if unknown := named - BY_NAME.keys():
            raise ValueError(f"there is no change {min(unknown)!r}")
        _ = self.known_facts  # raises, too

    @property
    def recommended(self) -> tuple[str, ...]:
        return tuple(BY_NAME[name].label for name in self.chosen)

    @property
    def table(self) -> list[RaceRow]:
        return [self._shown(row) for row in order_of([*self._rows()])]

    def _rows(self) -> Iterator[Row]:
        """Yield today's row, those that were started, and all that was chosen where that is more than one."""
        noise = self.today.loss_noise
        own = UNKNOWN if noise is None else judge_difference(noise, noise, 0.0)
        yield Row(TODAY, "today", memory_bytes=self.today_bytes, numbers=own)
        for row in self.rows:
            if row.memory_bytes is not None:
                yield _row(row)
        if len(self.chosen) > 1:
            yield Row(
                self.chosen,
                _label(self.chosen),
                kind="all that is recommended, against today’s script",
                speed=self.found_gain,
                memory_bytes=self.chosen_memory_bytes,
                numbers=self.chosen_numbers or UNKNOWN,
            )

    def _shown(self, row: Row) -> RaceRow:
        own = next((each for each in self.rows if (each.name,) == row.entry), None)
        is_elsewhere = own.draws_elsewhere if own else is_excused(row.entry, row.numbers, self.known_facts)
        numbers = describe_numbers(row.numbers, draws_elsewhere=is_elsewhere)
        speed = speed_text(row.speed, row.rough_speed, self.verdict)
        return RaceRow(row, speed, numbers, is_on_top=own is not None and bool(own.beside))

    @property
    def not_tried(self) -> list[NotTried]:
        left_out = [row for row in self.rows if row.memory_bytes is None]
        return [NotTried(row.name, row.label, row.reason or "the race ended before") for row in left_out]

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

    @property
    def timed_rounds(self) -> int:
        return sum(each.failed is None for each in self.all_rounds)


def _row(row: VariantRow) -> Row:
    return Row(
        (row.name,),
        row.label,
        kind=f"with {_label(row.beside)} in both" if row.beside else "",
        speed=row.speed,
        rough_speed=row.rough_speed,
        memory_bytes=row.memory_bytes,
        numbers=row.numbers or UNKNOWN,
        compile_seconds=row.compile_seconds,
        pays_after_steps=row.pays_after_steps,
        reason=row.reason,
    )


def _label(names: Entry) -> str:
    return " + ".join(BY_NAME[name].label for name in names)
