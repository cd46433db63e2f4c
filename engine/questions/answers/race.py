"""PURE: the answer of a race, worked out from its rounds. Lines to paste are written from facts, never read from it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...errors import SpecError
from ...race.field import TODAY, Entry, Field
from ...race.numbers import Numbers
from ...race.variants import label_of_entry
from ...trainings.script.faster.answer import TIME_IS_UP, RaceOfScript
from ...trainings.script.faster.facts import Facts
from ...trainings.script.faster.spec import OWN, OwnRaceSpec
from ..documents.raced import AnyRace, OwnRaced, Raced
from ..documents.stored import StoredSpec
from ..faster.answer import BLOCK_SECONDS, RaceOfSettings
from ..faster.spec import FasterSpec
from .document import read_facts
from .impossible import Impossible, refuse, within
from .limits import (
    BATCH_SIZE_MOST,
    LEAST_STEP_SECONDS,
    MOST_CORES,
    MOST_PROCESSES,
    MOST_RANKS,
    SLACK_SECONDS,
)
from .physics import impossible_conditions, impossible_device, impossible_place

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,59}", re.ASCII)
"""What a class, a type or a library may be called that a line to paste or a reason names."""
_PRECISIONS = (None, "highest", "high", "medium")
_NOT_KEPT = "is missing: the version that raced this kept too little of it to be decided again; race it again"
_STARTS_OF_TODAY = 2


def answer_of_race(document: Mapping[str, Any]) -> Raced:
    """Return the race with all that its rounds and rows imply. Raises SpecError and ImpossibleFiguresError."""
    stored = read_facts(Raced, document)
    spec = FasterSpec.from_dict({**stored.spec.to_dict(), "device": stored.device.device})
    today = spec.run_spec()
    race = RaceOfSettings(
        today=today,
        wanted=spec.wanted,
        device_kind=stored.device.kind,
        cores=stored.cores,
        own_difference=stored.own_difference,
        rows=stored.rows,
        rounds=stored.rounds,
        rounds_of_sizes=stored.rounds_of_sizes,
    )
    _check_entries(stored, race.racing)
    race = replace(race, sizes=[replace(at, label=label_of_entry(at.entry)) for at in stored.sizes])
    refuse([*impossible_device(stored.device, today), *_impossible_of_settings(stored, race)])
    found = replace(stored, spec=StoredSpec(spec.to_dict()), **race.members())
    refuse(_not_offered(found))
    return found


def answer_of_own_race(document: Mapping[str, Any]) -> OwnRaced:
    """Return the race with all it implies. Raises SpecError, also of an older form, and ImpossibleFiguresError."""
    if "facts" not in document:
        raise SpecError("facts", _NOT_KEPT)
    stored = read_facts(OwnRaced, document)
    spec = _read_spec(stored)
    is_time_up = TIME_IS_UP in stored.remarks if stored.is_time_up is None else stored.is_time_up
    race = RaceOfScript(
        spec=spec,
        facts=_facts(stored),
        rows=stored.rows,
        rounds_of_workers=stored.rounds_of_workers,
        rounds=stored.rounds,
        is_time_up=is_time_up,
    )
    refuse([*impossible_place(stored.device, spec.device), *_impossible_of_script(stored, race)])
    members = race.members(stored.chosen_memory_bytes, stored.chosen_numbers)
    return replace(stored, spec=StoredSpec(spec.to_dict()), **members)


def _check_entries(stored: Raced, racing: Field) -> None:
    """Raise SpecError for changes that did not race, twice the same row, and sizes of what has no row."""
    seen = set[Entry]()
    for number, row in enumerate(stored.rows):
        if racing.entry(row.entry) != row.entry or row.entry in seen:
            raise SpecError(f"rows[{number}].entry", "does not race here, is not in its order, or has two rows")
        seen.add(row.entry)
    for number, at in enumerate(stored.sizes):
        if at.entry not in seen:
            raise SpecError(f"sizes[{number}].entry", "has no row")


def _read_spec(stored: OwnRaced) -> OwnRaceSpec:
    given = stored.spec.to_dict()
    spec = OwnRaceSpec.of_document(given)
    spec.check_derived(given)
    if (names := [row.name for row in stored.rows]) != (wanted := [each.name for each in spec.variants]):
        raise SpecError("rows", f"must be of {', '.join(wanted)}, not of {', '.join(names)[:200]}")
    return spec


def _facts(stored: OwnRaced) -> Facts:
    """Return the facts. Raises SpecError for a text that is no name: lines to paste are written from them."""
    noted = stored.facts
    for path, name in (
        ("framework", noted.framework),
        *((f"optimizers[{place}].name", each.name) for place, each in enumerate(noted.optimizers)),
        *((f"models[{place}].dtypes", name) for place, each in enumerate(noted.models) for name in each.dtypes),
        *(
            (f"models[{place}].name", name)
            for place, each in enumerate(noted.models)
            for name in filter(None, (each.name, each.held_as, *(p for by in each.cached_by for p in by.split("."))))
        ),
    ):
        if not _NAME.fullmatch(name):
            raise SpecError(f"facts.{path}", "is no name of a class, a type or a library")
    if noted.matmul_precision not in _PRECISIONS:
        raise SpecError("facts.matmul_precision", "is none of torch's")
    if not all(0 <= each.workers <= MOST_CORES for each in noted.loaders):
        raise SpecError("facts.loaders", f"must have 0 to {MOST_CORES:,} workers")
    try:
        _ = stored.known_facts.is_before_ampere
    except ValueError as exc:
        raise SpecError("device.compute_capability", "is no version") from exc
    return stored.known_facts


def _impossible_of_settings(stored: Raced, race: RaceOfSettings) -> Iterator[Impossible]:
    today = race.today
    yield from within("cores", stored.cores, 1, MOST_CORES)
    yield from within("own_difference", stored.own_difference, 0, math.inf)
    yield from _rows(stored, stored.device.limit_bytes or stored.device.capacity_bytes)
    for number, at in enumerate(stored.sizes):
        yield from within(f"sizes[{number}].largest_batch_size", at.largest_batch_size, 0, today.max_batch_size)
        most = today.max_batch_size if at.largest_batch_size is None else at.largest_batch_size
        yield from within(f"sizes[{number}].batch_size", at.batch_size, 0, most)
    least, most = (size * today.accumulation_steps for size in (today.current_batch_size, today.max_batch_size))
    raced = {"rounds": race.racing, "rounds_of_sizes": race.racing_sizes}
    yield from _rounds(stored, raced, least, most, block_seconds=BLOCK_SECONDS)


def _not_offered(found: Raced) -> Iterator[Impossible]:
    """Yield a recommended entry whose training failed or differs from today's."""
    row = next((each for each in found.rows if each.entry == found.chosen), None)
    is_offered = row is not None and row.numbers.is_offered and row.memory_bytes is not None
    if found.is_found and found.chosen != TODAY and not is_offered:
        yield Impossible("chosen", found.chosen, TODAY)


def _impossible_of_script(stored: OwnRaced, race: RaceOfScript) -> Iterator[Impossible]:
    spec, today, capacity = race.spec, stored.today, stored.device.capacity_bytes
    if (limit := stored.device.limit_bytes) is not None:
        yield Impossible("device.limit_bytes", limit, None)
    sizes = (1, BATCH_SIZE_MOST) if spec.batch == OWN else (spec.current_batch_size, spec.current_batch_size)
    least_samples = today.batch_size * today.ranks
    for name, value, (low, high) in (
        ("today.cores", today.cores, (1, MOST_CORES)),
        ("today.ranks", today.ranks, (1, MOST_RANKS)),
        ("today.batch_size", today.batch_size, sizes),
        ("today.samples_per_step", today.samples_per_step, (least_samples, BATCH_SIZE_MOST * MOST_RANKS)),
        ("today.memory_bytes", today.memory_bytes, (1, capacity)),
        ("facts.kept_bytes", stored.facts.kept_bytes, (0, capacity)),
        ("today.step_seconds", today.step_seconds, (LEAST_STEP_SECONDS, stored.total_seconds)),
        ("today.waiting_fraction", today.waiting_fraction, (0, 1)),
        ("today.loss_noise", today.loss_noise, (0, math.inf)),
        ("today.mask_noise", today.mask_noise, (0, math.inf if race.facts.draws_masks else 0)),
        ("today.is_batch_size_guessed", today.is_batch_size_guessed, (0, spec.batch == OWN)),
    ):
        yield from within(name, value, low, high)
    if not least_samples or today.samples_per_step % least_samples:
        yield Impossible("today.samples_per_step", today.samples_per_step, f"a multiple of {least_samples}")
    yield from _rows(stored, capacity)
    yield from _figures("chosen_", stored.chosen_memory_bytes, stored.chosen_numbers, capacity)
    raced = {"rounds_of_workers": race.of_workers, "rounds": race.of_rest}
    yield from _rounds(stored, raced, today.samples_per_step, today.samples_per_step)
    tried = sum(row.memory_bytes is not None for row in stored.rows)
    started = sum(not one.was_held for each in stored.all_rounds for one in each.timed)
    starts = _STARTS_OF_TODAY + (today.mask_noise is not None) + tried + started
    yield from within("starts", stored.starts, starts, MOST_PROCESSES)


def _rows(stored: AnyRace, most_bytes: int) -> Iterator[Impossible]:
    for number, row in enumerate(stored.rows):
        yield from _figures(f"rows[{number}].", row.memory_bytes, row.numbers, most_bytes)
        yield from within(f"rows[{number}].compile_seconds", row.compile_seconds, 0, stored.total_seconds)


def _figures(path: str, memory_bytes: int | None, numbers: Numbers | None, most_bytes: int) -> Iterator[Impossible]:
    yield from within(f"{path}memory_bytes", memory_bytes, 1, most_bytes)
    difference = None if numbers is None else numbers.largest_difference
    yield from within(f"{path}numbers.largest_difference", difference, 0, math.inf)


def _rounds(
    stored: AnyRace, raced: Mapping[str, Field], least_samples: int, most_samples: int, *, block_seconds: float = 0.0
) -> Iterator[Impossible]:
    """Yield what cannot have been timed, by the fewest samples of a step. Raises SpecError for what did not race."""
    most = most_samples / LEAST_STEP_SECONDS
    for name, racing in raced.items():
        for number, each in enumerate(getattr(stored, name)):
            path, least_seconds = f"{name}[{number}]", -SLACK_SECONDS
            for place, one in enumerate(each.timed):
                if racing.entry(one.entry) != one.entry:
                    raise SpecError(f"{path}.timed[{place}].entry", "does not race")
                if not 0 < one.samples_per_second <= most:
                    yield Impossible(f"{path}.timed[{place}].samples_per_second", one.samples_per_second, most)
                    continue
                least_seconds += least_samples / one.samples_per_second
                yield from impossible_conditions(f"{path}.timed[{place}]", one)
                yield from within(f"{path}.timed[{place}].seconds", one.seconds, 0, each.seconds + SLACK_SECONDS)
            least_seconds = max(least_seconds, block_seconds * len(each.timed))
            if each.seconds < least_seconds:
                yield Impossible(f"{path}.seconds", each.seconds, least_seconds)
    spent = sum(each.seconds for each in stored.all_rounds)
    if spent > stored.total_seconds + SLACK_SECONDS:
        yield Impossible("total_seconds", stored.total_seconds, spent)
