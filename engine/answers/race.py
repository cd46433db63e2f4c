"""PURE: the answer of a race of settings, worked out from its rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..documents.raced import Raced
from ..documents.stored import StoredSpec
from ..errors import SpecError
from ..faster.answer import (
    BLOCK_SECONDS,
    concluded,
    field_of_sizes,
    not_reached,
    options_of,
    tolerance_of,
    with_figures,
    with_speed,
)
from ..faster.result import AtSize, Row
from ..faster.spec import FasterSpec
from ..race.field import TODAY, Entry, Field, RacedRound, RaceVerdict
from ..race.numbers import judge_difference
from ..race.rule import decide
from ..race.variants import CHANGES, NotTried, changes_to_try, field_of, label_of_entry, settings_of_entry
from ..spec import RunSpec
from .document import MOST_ENTRIES, read_facts
from .impossible import Impossible, refuse, within
from .limits import LEAST_STEP_SECONDS, MOST_CORES, SLACK_SECONDS
from .physics import impossible_device


def answer_of_race(document: Mapping[str, Any]) -> Raced:
    """Return the race with all that follows from its rounds, and from what was measured of each row.

    Raises SpecError for a malformed one, and ImpossibleFiguresError.
    """
    stored = read_facts(Raced, document)
    spec = FasterSpec.from_dict({**stored.spec.to_dict(), "device": stored.device.device})
    today = spec.run_spec()
    changes, not_tried = changes_to_try(today, spec.wanted)
    shares_cores = stored.device.kind == "cpu"
    racing = field_of(today, changes, cores=stored.cores, shares_cores=shares_cores)
    _check_entries(stored, racing)
    options = options_of(stored.sizes, today.current_batch_size)
    of_sizes = field_of_sizes(options, cores=stored.cores, shares_cores=shares_cores)
    _check_timed("rounds_of_sizes", stored.rounds_of_sizes, of_sizes)
    refuse([*impossible_device(stored.device, today), *_impossible(stored, today)])
    found = _answer(stored, spec, racing, of_sizes, not_tried)
    refuse(_not_offered(found))
    return found


def _check_entries(stored: Raced, racing: Field) -> None:
    """Raise SpecError for changes that did not race, twice the same row, and rounds of what has no row."""
    seen = set[Entry]()
    for number, row in enumerate(stored.rows):
        path = f"rows[{number}].entry"
        _check_entry(path, row.entry, racing)
        if row.entry in seen:
            raise SpecError(path, "has two rows")
        seen.add(row.entry)
    for number, at in enumerate(stored.sizes):
        _check_entry(f"sizes[{number}].entry", at.entry, racing)
        if at.label != label_of_entry(at.entry):
            raise SpecError(f"sizes[{number}].label", "is not that of its changes")
        if at.entry not in seen:
            raise SpecError(f"sizes[{number}].entry", "has no row")
    if len({each.entry for each in stored.sizes}) < len(stored.sizes):
        raise SpecError("sizes", "have two of the same changes")
    _check_timed("rounds", stored.rounds, racing)
    for number, each in enumerate(stored.rounds):
        for entry in (*(timed.entry for timed in each.timed), *(() if each.failed is None else (each.failed,))):
            if entry not in seen:
                raise SpecError(f"rounds[{number}]", "times what has no row")


def _check_entry(path: str, entry: Entry, racing: Field) -> None:
    if not set(entry) <= CHANGES.keys() or racing.entry(entry) != entry:
        raise SpecError(path, "is not a change that races here, or not in its order")


def _check_timed(path: str, rounds: Sequence[RacedRound], racing: Field) -> None:
    for number, each in enumerate(rounds):
        timed = [one.entry for one in each.timed]
        least = 2 if each.failed is None else 0
        if not least <= len(set(timed)) == len(timed) <= MOST_ENTRIES:
            raise SpecError(f"{path}[{number}].timed", "must have one block of each of two or more")
        for entry in (*timed, *(() if each.failed is None else (each.failed,))):
            if racing.entry(entry) != entry:
                raise SpecError(f"{path}[{number}]", "times what does not race")


def _impossible(stored: Raced, today: RunSpec) -> Iterator[Impossible]:
    """Yield what no machine can have measured."""
    yield from within("cores", stored.cores, 1, MOST_CORES)
    least = today.current_batch_size * today.accumulation_steps
    most = today.max_batch_size * today.accumulation_steps / LEAST_STEP_SECONDS
    spent = 0.0
    for name in ("rounds", "rounds_of_sizes"):
        for number, each in enumerate(getattr(stored, name)):
            spent += each.seconds
            path = f"{name}[{number}]"
            if each.seconds < BLOCK_SECONDS * len(each.timed):
                yield Impossible(f"{path}.seconds", each.seconds, BLOCK_SECONDS * len(each.timed))
            for place, one in enumerate(each.timed):
                slowest = least / (each.seconds + SLACK_SECONDS)  # each block made a step at least
                yield from within(f"{path}.timed[{place}].samples_per_second", one.samples_per_second, slowest, most)
                yield from within(f"{path}.timed[{place}].others_cores", one.others_cores, 0, MOST_CORES)
                if one.seconds is not None:  # its blocks take the same time
                    yield Impossible(f"{path}.timed[{place}].seconds", one.seconds, None)
    if spent > stored.total_seconds + SLACK_SECONDS:
        yield Impossible("total_seconds", stored.total_seconds, spent)
    if (stored.own_difference or 0.0) < 0:
        yield Impossible("own_difference", stored.own_difference, 0)
    limit = stored.device.limit_bytes or stored.device.capacity_bytes
    for number, row in enumerate(stored.rows):
        if row.memory_bytes is not None and not 0 < row.memory_bytes <= limit:
            yield Impossible(f"rows[{number}].memory_bytes", row.memory_bytes, limit)
        is_compiled = today.torch_compile or settings_of_entry(row.entry).get("torch_compile", False)
        if row.compile_seconds is not None and not (is_compiled and 0 <= row.compile_seconds <= stored.total_seconds):
            most_seconds = stored.total_seconds if is_compiled else None
            yield Impossible(f"rows[{number}].compile_seconds", row.compile_seconds, most_seconds)
        if (row.numbers.largest_difference or 0.0) < 0:
            yield Impossible(f"rows[{number}].numbers.largest_difference", row.numbers.largest_difference, 0)
        yield from _size(f"rows[{number}]", row.largest_batch_size, today)
    for number, at in enumerate(stored.sizes):
        yield from _size(f"sizes[{number}]", at.largest_batch_size, today)
        if not 0 <= at.batch_size <= (at.largest_batch_size or today.max_batch_size):
            yield Impossible(f"sizes[{number}].batch_size", at.batch_size, at.largest_batch_size)


def _size(path: str, largest: int | None, today: RunSpec) -> Iterator[Impossible]:
    if largest is not None and not 0 <= largest <= today.max_batch_size:
        yield Impossible(f"{path}.largest_batch_size", largest, today.max_batch_size)


def _answer(stored: Raced, spec: FasterSpec, racing: Field, of_sizes: Field, not_tried: tuple[NotTried, ...]) -> Raced:
    """Return the race with every figure that follows from others computed from them."""
    today = spec.run_spec()
    at_today = _verdict_of(racing, stored.rounds)
    at_own = None
    if stored.at_own_size is not None or stored.rounds_of_sizes:
        at_own = _verdict_of(of_sizes, stored.rounds_of_sizes)
    sizes = tuple(_size_again(each, stored.rounds_of_sizes, of_sizes) for each in stored.sizes)
    largest = {each.entry: each.largest_batch_size for each in stored.sizes}
    return replace(
        stored,
        spec=StoredSpec(spec.to_dict()),
        not_tried=(*not_tried, *not_reached(racing, {row.entry for row in stored.rows})),
        rows=tuple(_row_again(row, today, stored, racing, largest.get(row.entry)) for row in stored.rows),
        **concluded(today, stored.device.kind, at_today, at_own, sizes, [*stored.rounds, *stored.rounds_of_sizes]),
    )


def _verdict_of(racing: Field, rounds: Sequence[RacedRound]) -> RaceVerdict:
    """Return the verdict of these rounds, after which nothing was timed any more: as if the time was up."""
    verdict = decide(replace(racing, most_seconds=0.0), rounds)
    assert isinstance(verdict, RaceVerdict)
    return verdict


def _size_again(at: AtSize, rounds: Sequence[RacedRound], of_sizes: Field) -> AtSize:
    again = with_speed(at, rounds, of_sizes)
    has_raced = again.speed is not None or again.rough_speed is not None
    return replace(again, reason=None) if has_raced and all(r.failed != (at.option,) for r in rounds) else again


def _row_again(row: Row, today: RunSpec, stored: Raced, racing: Field, largest: int | None) -> Row:
    numbers = row.numbers
    if numbers.largest_difference is not None:
        tolerance = tolerance_of(replace(today, **settings_of_entry(row.entry)), today)
        numbers = judge_difference(numbers.largest_difference, stored.own_difference, tolerance)
    elif numbers.is_offered:
        numbers = replace(numbers, largest_difference=0.0)
    found = with_figures(row, today, stored.rounds, racing, stored.sizes)
    has_raced = found.samples_per_second is not None and all(r.failed != row.entry for r in stored.rounds)
    reason = None if has_raced else found.reason  # one that raced to the end has nothing to explain
    return replace(found, numbers=numbers, largest_batch_size=largest, reason=reason)


def _not_offered(found: Raced) -> Iterator[Impossible]:
    """Yield what is recommended although it failed, or does not train the same."""
    row = next((each for each in found.rows if each.entry == found.chosen), None)
    is_offered = row is not None and row.numbers.is_offered and row.memory_bytes is not None
    if found.is_found and found.chosen != TODAY and not is_offered:
        yield Impossible("chosen", found.chosen, TODAY)
