"""PURE: the answer of a race of somebody's own script, worked out from its rounds and the facts of today's training.

The lines to paste are written from those facts, never taken from the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..documents.own_raced import OwnRaced
from ..documents.stored import StoredSpec
from ..errors import SpecError
from ..race.field import TODAY, Entry, Field, RacedRound, RaceVerdict, mean_others_cores
from ..race.numbers import UNKNOWN, Numbers
from ..race.row import VariantRow
from ..race.rule import does_load_stay
from ..race.text import lines_to_paste
from ..results.savings import savings
from ..results.speed_rounds import SpeedClaim
from ..tune.faster.answer import (
    FAILED,
    GIVEN_UP,
    NOTHING_TIMED,
    TIME_IS_UP,
    answer_of,
    coarsest,
    field_of,
    is_raced,
    race_waits_for_workers,
    row_of,
    step_seconds_on,
    together,
    verdict_of,
    with_speed,
    with_start,
)
from ..tune.faster.facts import Facts
from ..tune.faster.spec import OWN, OwnRaceSpec, read_own_race_spec
from ..tune.faster.trial import numbers_again
from ..tune.faster.variants import BY_NAME, WORKERS
from .document import read_facts
from .impossible import Impossible, refuse, within
from .limits import BATCH_SIZE_MOST, LEAST_STEP_SECONDS, MOST_CORES, MOST_PROCESSES, MOST_RANKS, SLACK_SECONDS
from .physics import impossible_place

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,59}", re.ASCII)
"""What a class, a type or a library may be called that a line to paste or a reason names."""
_PRECISIONS = (None, "highest", "high", "medium")
_NOT_KEPT = "is missing: the version that raced this kept too little of it to be decided again; race it again"
_STARTS_OF_TODAY = 2


def answer_of_own_race(document: Mapping[str, Any]) -> OwnRaced:
    """Return the race with all that follows from its rounds, and from what was measured of each row.

    Raises SpecError for a malformed one, also of an older form, and ImpossibleFiguresError.
    """
    if "facts" not in document:
        raise SpecError("facts", _NOT_KEPT)
    stored = read_facts(OwnRaced, document)
    spec = _read_spec(stored)
    race = _Race(stored, spec, _facts(stored))
    refuse([*impossible_place(stored.device, spec.device), *_impossible(stored, spec, race.facts)])
    return race.answer()


def _read_spec(stored: OwnRaced) -> OwnRaceSpec:
    given = stored.spec.to_dict()
    spec = read_own_race_spec(given)
    for name in spec.DERIVED:
        if name in given and given[name] != getattr(spec, name):
            raise SpecError(f"spec.{name}", f"must be {getattr(spec, name)!r}")
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
        return stored.known_facts
    except ValueError as exc:
        raise SpecError("device.compute_capability", "is no version") from exc


def _impossible(stored: OwnRaced, spec: OwnRaceSpec, facts: Facts) -> Iterator[Impossible]:
    """Yield what no machine can have measured."""
    today, capacity = stored.today, stored.device.capacity_bytes
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
        ("today.waiting_fraction", today.waiting_fraction or 0.0, (0, 1)),
        ("today.loss_noise", today.loss_noise or 0.0, (0, float("inf"))),
        ("today.mask_noise", today.mask_noise or 0.0, (0, float("inf") if facts.draws_masks else 0)),
        ("today.is_batch_size_guessed", today.is_batch_size_guessed, (0, spec.batch == OWN)),
    ):
        yield from within(name, value, low, high)
    trials = {f"rows[{number}].": (row.memory_bytes, row.numbers) for number, row in enumerate(stored.rows)}
    trials["chosen_"] = (stored.chosen_memory_bytes, stored.chosen_numbers)
    for path, (memory_bytes, numbers) in trials.items():
        yield from within(f"{path}memory_bytes", memory_bytes, 1, capacity)
        difference = None if numbers is None else numbers.largest_difference
        yield from within(f"{path}numbers.largest_difference", difference, 0, float("inf"))
    for number, row in enumerate(stored.rows):
        yield from within(f"rows[{number}].compile_seconds", row.compile_seconds, 0, stored.total_seconds)
    if not least_samples or today.samples_per_step % least_samples:
        yield Impossible("today.samples_per_step", today.samples_per_step, f"a multiple of {least_samples}")
    most = today.samples_per_step / LEAST_STEP_SECONDS
    for name in ("rounds_of_workers", "rounds"):
        for number, each in enumerate(getattr(stored, name)):
            path, least_seconds = f"{name}[{number}]", 0.0
            for place, one in enumerate(each.timed):
                if not 0 < one.samples_per_second <= most:
                    yield Impossible(f"{path}.timed[{place}].samples_per_second", one.samples_per_second, most)
                    continue
                least_seconds += today.samples_per_step / one.samples_per_second
                yield from within(f"{path}.timed[{place}].others_cores", one.others_cores, 0, MOST_CORES)
                yield from within(f"{path}.timed[{place}].seconds", one.seconds, 0, each.seconds + SLACK_SECONDS)
            if each.seconds < least_seconds - SLACK_SECONDS:  # each start made a step at least
                yield Impossible(f"{path}.seconds", each.seconds, least_seconds)
    spent = sum(each.seconds for each in stored.all_rounds)
    if spent > stored.total_seconds + SLACK_SECONDS:
        yield Impossible("total_seconds", stored.total_seconds, spent)
    tried = sum(row.memory_bytes is not None for row in stored.rows)
    started = sum(not one.was_held for each in stored.all_rounds for one in each.timed)
    starts = _STARTS_OF_TODAY + (today.mask_noise is not None) + tried + started
    yield from within("starts", stored.starts, starts, MOST_PROCESSES)


@dataclass(frozen=True, slots=True)
class _Race:
    """A stored race, and what decides it again."""

    stored: OwnRaced
    spec: OwnRaceSpec
    facts: Facts

    @property
    def is_time_up(self) -> bool:
        return TIME_IS_UP in self.stored.remarks

    @property
    def is_waiting(self) -> bool:
        """Whether loader workers raced alone first."""
        rows = {each.name: row_of(each, self.facts) for each in self.spec.variants}
        return race_waits_for_workers(self.stored.today, rows)

    @property
    def of_workers(self) -> Field:
        return self._field((WORKERS,) if self._is_raced(WORKERS) else ())

    @property
    def of_rest(self) -> Field:
        first = (WORKERS,) if self.is_waiting else ()
        return self._field(row.name for row in self.stored.rows if row.name not in first and self._is_raced(row.name))

    def _field(self, names: Any) -> Field:
        return field_of(names, cores=self.stored.today.cores, shares_cores=self.stored.device.kind == "cpu")

    def _is_raced(self, name: str) -> bool:
        row = next(each for each in self.stored.rows if each.name == name)
        return is_raced(self._started(row, TODAY))

    def answer(self) -> OwnRaced:
        """Return the race with every figure that follows from others computed from them."""
        stored = self.stored
        at_workers = self._at_workers()
        base = TODAY if at_workers is None else at_workers.chosen
        remarks = [GIVEN_UP] if self._is_given_up else [TIME_IS_UP] if self.is_time_up else []
        at_rest = self._at_rest()
        verdict, entry = answer_of(at_workers, at_rest)
        step_seconds = step_seconds_on(base, stored.today, at_workers)
        rows = tuple(self._row_again(row, base, step_seconds) for row in stored.rows)
        memory_bytes, numbers = self._together(entry, rows)
        chosen, why_dropped = together(entry, numbers, self.facts, stored.today.loss_noise)
        gain = verdict.gain if chosen else None
        return replace(
            stored,
            spec=StoredSpec(self.spec.to_dict()),
            rows=rows,
            at_workers=at_workers,
            base=base,
            at_rest=at_rest,
            verdict=verdict,
            chosen=chosen,
            chosen_memory_bytes=memory_bytes,
            chosen_numbers=numbers,
            savings=savings(self.spec, gain, is_bound=verdict.claim is SpeedClaim.AT_LEAST),
            lines=tuple(lines_to_paste(chosen, rows)),
            others_cores=mean_others_cores(stored.all_rounds),
            remarks=(*remarks, *([why_dropped] if why_dropped else [])),
        )

    @property
    def _is_given_up(self) -> bool:
        return self.is_waiting and does_load_stay(self.of_workers, self.stored.rounds_of_workers)

    @property
    def _has_rest(self) -> bool:
        """Whether the others raced after the workers: not where the first race took all the time, or was given up."""
        if self.stored.rounds:
            return True
        return not self._is_given_up and not (self.is_time_up and self.is_waiting and self.stored.at_rest is None)

    def _at_workers(self) -> RaceVerdict | None:
        if not self.is_waiting:
            return None
        ended = self.is_time_up and not self._has_rest
        return _verdict(self.of_workers, self.stored.rounds_of_workers, ended_before=ended)

    def _at_rest(self) -> RaceVerdict | None:
        if not self._has_rest:
            return None
        return _verdict(self.of_rest, self.stored.rounds, ended_before=self.is_time_up)

    def _started(self, row: VariantRow, base: Entry) -> VariantRow:
        """Return the row as its first start left it."""
        variant = BY_NAME[row.name]
        begun = row_of(variant, self.facts)
        if begun.reason is not None:
            return begun
        if row.memory_bytes is None:
            is_left_out = self.is_time_up or self._is_given_up_by_remark
            reason = row.reason if is_left_out and row.reason is None else _failure(row)
            return replace(begun, reason=reason)
        numbers = numbers_again(row.numbers or UNKNOWN, self.stored.today.loss_noise, variant.rounds_as)
        return with_start(
            begun,
            self.facts,
            beside=base,
            memory_bytes=row.memory_bytes,
            numbers=numbers,
            noise=self.stored.today.loss_noise,
            compile_seconds=row.compile_seconds,
        )

    @property
    def _is_given_up_by_remark(self) -> bool:
        return GIVEN_UP in self.stored.remarks

    def _row_again(self, row: VariantRow, base: Entry, step_seconds: float) -> VariantRow:
        is_first = self.is_waiting and row.name == WORKERS
        base = TODAY if is_first else base
        again = self._started(row, base)
        racing, rounds = self.of_rest, self.stored.rounds
        if is_first:
            racing, rounds = self.of_workers, self.stored.rounds_of_workers
        if is_raced(again):
            again = with_speed(again, rounds, racing, base=base, step_seconds=step_seconds)
            if any(each.failed == (row.name,) for each in rounds):
                again = replace(again, reason=_failure(row))
        return again

    def _together(self, entry: Entry, rows: Sequence[VariantRow]) -> tuple[int | None, Numbers | None]:
        if len(entry) < 2:
            row = next((each for each in rows if each.name in entry), None)
            return (row.memory_bytes, row.numbers) if row else (None, None)
        numbers, noise = self.stored.chosen_numbers, self.stored.today.loss_noise
        again = None if numbers is None else numbers_again(numbers, noise, coarsest(entry))
        return self.stored.chosen_memory_bytes, again


def _failure(row: VariantRow) -> str:
    """Return why a variant that was started shows nothing: in the words of its machine, which nothing follows from."""
    return row.reason if row.reason is not None and row.reason.startswith(FAILED) else FAILED


def _verdict(racing: Field, rounds: Sequence[RacedRound], *, ended_before: bool) -> RaceVerdict:
    return NOTHING_TIMED if ended_before and not rounds else verdict_of(racing, rounds)
