"""Races beside each other: what each change did in each of them, and what each recommends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.formatting import percent_more
from analysis.lists.comparison.compared_run import ComparedRun, Outcome
from analysis.lists.environment import environment_facts
from analysis.models import Run
from analysis.presentation.kinds import presentation_of
from analysis.presentation.unreadable import UnreadableError
from engine.questions.documents.raced import AnyRace, RaceRow
from engine.race.field import TODAY

NAMED_MOST = 3
LARGER_BATCH = "A larger batch size"


@dataclass(frozen=True, slots=True)
class ComparedRace:
    """One race of a comparison; `race` is None for a run without a result."""

    subject: ComparedRun
    race: AnyRace | None

    @property
    def answer(self) -> str:
        """Write "1.42x [1.39, 1.46] as fast: Fused optimizer + batch 64", or what else was found."""
        if (race := self.race) is None:
            return ""
        changes = race.parts if race.factor else self.savers[:1]
        return ": ".join(filter(None, [race.in_short, " + ".join(changes)]))

    @property
    def recommended(self) -> tuple[str, ...]:
        """Return the labels recommended for speed; another batch size is only called larger."""
        if self.race is None or not self.race.factor:
            return ()
        return (*self.race.recommended, *([LARGER_BATCH] if self.race.own_size is not None else []))

    @property
    def savers(self) -> tuple[str, ...]:
        return tuple(each.label for each in self.race.savers) if self.race else ()


@dataclass(frozen=True, slots=True)
class ChangeCell:
    """One race's result for a change, against its own baseline; empty if untried, only a note if it failed to start."""

    speed: str = ""
    memory: str = ""
    numbers: str = ""
    note: str = ""
    is_tried: bool = False
    is_recommended: bool = False


@dataclass(frozen=True, slots=True)
class ChangeRow:
    label: str
    cells: tuple[ChangeCell, ...]

    @property
    def is_tried(self) -> bool:
        return any(cell.is_tried for cell in self.cells)


def compared_races(runs: Iterable[Run]) -> list[ComparedRace]:
    return [_compared_race(run, number) for number, run in enumerate(runs)]


def races_headline(races: Sequence[ComparedRace]) -> str:
    """Write "Fused optimizer: recommended in 2 of 3 races; Loader workers: in 1.", and what saves memory in most."""
    ended = [each for each in races if each.race is not None]
    if not ended:
        return f"{len(races)} races without a result"
    faster = _counted("recommended", [label for each in ended for label in each.recommended], NAMED_MOST, len(ended))
    smaller = _counted("less memory", [label for each in ended for label in each.savers], 1, len(ended))
    if not faster and not smaller:
        return f"No change is recommended in {'this race' if len(ended) == 1 else f'these {len(ended)} races'}."
    return f"{'; '.join([*(faster or ['No change is recommended for speed']), *smaller])}."


def _counted(verdict: str, labels: Iterable[str], most: int, races: int) -> list[str]:
    """Write "Fused optimizer: recommended in 2 of 3 races", then "Loader workers: in 1", the most frequent first."""
    counts = Counter(labels).most_common(most)
    first = [f"{label}: {verdict} in {count} of {races} race{'' if races == 1 else 's'}" for label, count in counts[:1]]
    return first + [f"{label}: in {count}" for label, count in counts[1:]]


def change_rows(races: Sequence[ComparedRace]) -> list[ChangeRow]:
    columns = [_cells(each.race) for each in races]
    labels = list(dict.fromkeys(label for cells in columns for label in cells))
    rows = [ChangeRow(label, tuple(cells.get(label, ChangeCell()) for cells in columns)) for label in labels]
    return sorted(rows, key=lambda row: -sum(bool(cell.speed) for cell in row.cells))


def _compared_race(run: Run, number: int) -> ComparedRace:
    if not run.result:
        return ComparedRace(ComparedRun(run, {}, None, number=number), None)
    try:
        race = presentation_of(run).race(run)
    except UnreadableError as error:
        return ComparedRace(ComparedRun(run, {}, None, caveat=str(error), number=number), None)
    facts = environment_facts(race.device, race.environment)
    return ComparedRace(ComparedRun(run, facts, Outcome(), number=number), race)


def _cells(race: AnyRace | None) -> dict[str, ChangeCell]:
    if race is None:
        return {}
    cells = {each.row.label: _cell(each, race) for each in race.table if each.row.entry != TODAY}
    left_out = {each.label: ChangeCell(note=each.reason, is_tried=each.name in race.failed) for each in race.not_tried}
    return cells | left_out


def _cell(each: RaceRow, race: AnyRace) -> ChangeCell:
    row, more = each.row, race.memory_change(each.row.memory_bytes)
    return ChangeCell(
        speed=each.speed,
        memory="" if more is None else percent_more(more),
        numbers=each.numbers,
        note="; ".join(filter(None, (row.kind if race.is_of_command else "", row.reason))),
        is_tried=True,
        is_recommended=race.is_found and race.own_size is None and row.entry == race.chosen,
    )
