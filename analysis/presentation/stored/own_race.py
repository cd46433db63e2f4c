"""A stored race of a command, read for the page of races. Its lines are written here from what the hook noted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from analysis.presentation.stored.race import RaceRow, Saver, StoredRace
from analysis.presentation.stored.unreadable import read_stored
from engine.documents.own_raced import OwnRaced
from engine.faster.result import Row, order_of
from engine.race.field import TODAY, Entry
from engine.race.lines import TORCH, Lines
from engine.race.numbers import UNKNOWN, judge_difference
from engine.race.row import VariantRow
from engine.race.text import describe_basis, describe_numbers, speed_text
from engine.race.variants import NotTried
from engine.tune.faster.answer import is_excused
from engine.tune.faster.variants import BY_NAME


def read_own_race(result: Mapping[str, Any]) -> StoredRace:
    """Read the result of a finished race of a command. Raises UnreadableError."""
    return read_stored("result", _read_own_race, result)


def _read_own_race(result: Mapping[str, Any]) -> StoredRace:
    read = OwnRaced.from_dict(result)
    return StoredRace(
        headline=read.headline,
        basis=describe_basis(read.savings),
        gain=read.verdict.gain if read.chosen else None,
        claim=read.verdict.claim,
        chosen=read.chosen,
        recommended=tuple(BY_NAME[name].label for name in read.chosen),
        chosen_batch_size=None,
        batch_size=read.today.stated_batch_size,
        rows=tuple(_shown(row, read) for row in order_of(list(_rows(read)))),
        sizes=(),
        not_tried=tuple(_not_tried(read.rows)),
        lines=tuple(_lines(read)),
        rounds=sum(each.failed is None for each in read.all_rounds),
        own_rounds=read.verdict.rounds,
        device=read.device,
        environment=read.environment,
        total_seconds=read.total_seconds,
        remarks=tuple(read.sentences),
        savers=tuple(_savers(read)),
        is_of_command=True,
    )


def _rows(read: OwnRaced) -> Iterator[Row]:
    """Yield today's row, those that were started, and all that was chosen where that is more than one."""
    noise = read.today.loss_noise
    own = UNKNOWN if noise is None else judge_difference(noise, noise, 0.0)
    yield Row(TODAY, "today", memory_bytes=read.today.memory_bytes, numbers=own)
    for row in read.rows:
        if row.memory_bytes is not None:
            yield _row(row)
    if len(read.chosen) > 1:
        yield Row(
            read.chosen,
            _label(read.chosen),
            kind="all that is recommended, against today’s script",
            speed=read.verdict.gain,
            memory_bytes=read.chosen_memory_bytes,
            numbers=read.chosen_numbers or UNKNOWN,
        )


def _shown(row: Row, read: OwnRaced) -> RaceRow:
    own = next((each for each in read.rows if (each.name,) == row.entry), None)
    is_elsewhere = own.draws_elsewhere if own else is_excused(row.entry, row.numbers, read.known_facts)
    numbers = describe_numbers(row.numbers, draws_elsewhere=is_elsewhere)
    speed = speed_text(row.speed, row.rough_speed, read.verdict)
    return RaceRow(row, speed, numbers, is_on_top=own is not None and bool(own.beside))


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


def _savers(read: OwnRaced) -> Iterator[Saver]:
    for row in read.savers:
        if row.memory_bytes is not None:
            yield Saver(_label((row.name,)), 1 - row.memory_bytes / read.today.memory_bytes)


def _not_tried(rows: Iterable[VariantRow]) -> Iterator[NotTried]:
    for row in rows:
        if row.memory_bytes is None:
            yield NotTried(row.name, row.label, row.reason or "the race ended before")


def _lines(read: OwnRaced) -> Iterator[Lines]:
    facts = read.known_facts
    savers = tuple(row.name for row in read.savers)
    for title, names in (("In your script", read.chosen), ("In your script, for less memory", savers)):
        chosen = [BY_NAME[row.name] for row in read.rows if row.name in names]
        if lines := tuple(line for each in chosen for line in each.lines_for(facts).splitlines()):
            yield Lines(TORCH, title, lines)
