"""PURE: what the starts and rounds of `tune --faster` imply, in the run and, by `answers.race`, for documents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ....facts.savings import savings
from ....facts.speed_rounds import SpeedClaim, Stage
from ....race.answer import adds_to, verdict_of, with_speed
from ....race.field import NOTHING_TIMED, TODAY, Entry, Field, RacedRound, RaceVerdict, mean_others_cores
from ....race.numbers import OWN_FACTOR, UNKNOWN, Numbers, Sameness, is_hidden, judge_again
from ....race.row import VariantRow
from ....race.rule import does_load_stay
from ....race.text import lines_to_paste
from ....settings.step_settings import ROUNDING_TOLERANCES
from .facts import Facts
from .spec import OwnRaceSpec
from .variants import BY_NAME, COMPILE, CONFLICTS, VARIANTS, WORKERS, Variant

GIVEN_UP = "other work disturbed every round, so the other changes were not tried"
TIME_IS_UP = "the time budget ended before all was tried"
DIFFERS = "its losses differ by more than its precision explains"
NOT_FINITE = "one of its losses, or of today's, is not finite"
NO_LOSS = "whether it trains the same cannot be told: no finite loss was seen"
NOT_REPEATABLE = (
    "whether it trains the same cannot be told: two starts of today's training differ, until it seeds what it draws"
)
NOT_STARTED = "their losses were compared one by one only, as their start failed or the time was up"


def row_of(variant: Variant, facts: Facts) -> VariantRow:
    reason = variant.why_not(facts)
    return VariantRow(name=variant.name, label=variant.label, lines=variant.lines_for(facts), reason=reason)


def is_excused(names: Entry, numbers: Numbers, facts: Facts) -> bool:
    """Whether losses that differ say nothing, because other random numbers were drawn; one that is not finite does.

    Rows that draw do so in other workers; beside another change these are compared with the workers alone. With another
    type or order in memory a GPU draws other masks for dropout.
    """
    if numbers.sameness is Sameness.DIFFERS and numbers.largest_difference is None:
        return False
    if names == (WORKERS,) and (facts.noted.draws_random or facts.workers > 0):
        return True
    noise = facts.today.mask_noise
    most = math.inf if noise is None else OWN_FACTOR * noise  # None: of an older version
    masks_otherwise = facts.draws_masks and any(BY_NAME[name].masks_otherwise for name in names)
    return masks_otherwise and numbers.largest_difference is not None and numbers.largest_difference <= most


def why_not_offered(numbers: Numbers, facts: Facts) -> str:
    if numbers.sameness is Sameness.UNKNOWN:
        return NOT_REPEATABLE if is_hidden(facts.today.loss_noise) else NO_LOSS
    return DIFFERS if numbers.largest_difference is not None else NOT_FINITE


def is_raced(row: VariantRow) -> bool:
    return row.reason is None and row.memory_bytes is not None and not BY_NAME[row.name].saves_memory_only


@dataclass(frozen=True, kw_only=True)
class RaceOfScript:
    """What was measured of a race of a script, and what follows from it. `rows` have what their first starts showed."""

    spec: OwnRaceSpec
    facts: Facts
    rows: Sequence[VariantRow]
    rounds_of_workers: Sequence[RacedRound] = ()
    rounds: Sequence[RacedRound] = ()
    is_time_up: bool = False

    @cached_property
    def is_waiting(self) -> bool:
        """Whether loader workers race alone first: while data is waited for, no other change can gain."""
        applies = any(each.name == WORKERS and each.why_not(self.facts) is None for each in self.spec.variants)
        return self.facts.today.is_limited_by_loader and applies

    @cached_property
    def started(self) -> tuple[VariantRow, ...]:
        return tuple(map(self._started, self.rows))

    @cached_property
    def of_workers(self) -> Field:
        return self._field(is_first=True)

    @cached_property
    def of_rest(self) -> Field:
        return self._field(is_first=False)

    @property
    def is_given_up(self) -> bool:
        return self.is_waiting and does_load_stay(self.of_workers, self.rounds_of_workers)

    @cached_property
    def at_workers(self) -> RaceVerdict | None:
        return self._verdict(self.of_workers, self.rounds_of_workers) if self.is_waiting else None

    @cached_property
    def at_rest(self) -> RaceVerdict | None:
        return None if self.is_given_up else self._verdict(self.of_rest, self.rounds)

    @property
    def base(self) -> Entry:
        """Return the changes that the others are tried on top of."""
        return TODAY if self.at_workers is None else self.at_workers.chosen

    @property
    def answer(self) -> tuple[RaceVerdict, Entry]:
        """Return the deciding verdict, and the entry that is recommended."""
        first, rest = self.at_workers, self.at_rest
        if rest is None or (first is not None and first.is_found and not adds_to(first, rest)):
            return first or NOTHING_TIMED, self.base
        return rest, (*self.base, *rest.chosen)

    def members(self, memory_bytes: int | None, numbers: Numbers | None) -> dict[str, Any]:
        """Return the members of a result; the arguments are of all that was chosen, where that is more than one."""
        (verdict, entry), rounds = self.answer, [*self.rounds_of_workers, *self.rounds]
        rows = tuple(map(self._raced, self.rows, self.started))
        numbers = None if numbers is None else self._judged(numbers, coarsest(entry))
        if len(entry) < 2:
            row = next((each for each in rows if each.name in entry), None)
            memory_bytes, numbers = (row.memory_bytes, row.numbers) if row else (None, None)
        chosen, why_dropped = together(entry, numbers, self.facts)
        ended = GIVEN_UP if self.is_given_up else TIME_IS_UP if self.is_time_up else None
        gain = verdict.gain if chosen else None
        return {
            "rows": rows,
            "at_workers": self.at_workers,
            "base": self.base,
            "at_rest": self.at_rest,
            "verdict": verdict,
            "chosen": chosen,
            "chosen_memory_bytes": memory_bytes,
            "chosen_numbers": numbers,
            "savings": savings(self.spec, gain, is_bound=verdict.claim is SpeedClaim.AT_LEAST),
            "lines": tuple(lines_to_paste(chosen, rows)),
            "others_cores": mean_others_cores(rounds),
            "is_time_up": self.is_time_up,
            "remarks": tuple(filter(None, (ended, why_dropped))),
        }

    def _verdict(self, racing: Field, rounds: Sequence[RacedRound]) -> RaceVerdict:
        return verdict_of(racing, rounds) if rounds or not self.is_time_up else NOTHING_TIMED

    def _is_first(self, row: VariantRow) -> bool:
        return self.is_waiting and row.name == WORKERS

    def _field(self, *, is_first: bool) -> Field:
        names = tuple(row.name for row in self.started if self._is_first(row) is is_first and is_raced(row))
        is_cpu, cores = self.facts.device_kind == "cpu", self.facts.today.cores
        return Field(names, CONFLICTS, cores=cores, shares_cores=is_cpu)

    def _judged(self, numbers: Numbers, rounds_as: str) -> Numbers:
        noise = self.facts.today.loss_noise
        return UNKNOWN if noise is None else judge_again(numbers, noise, ROUNDING_TOLERANCES[rounds_as])

    def _started(self, row: VariantRow) -> VariantRow:
        """Return the row as its first start left it, with why it does not race."""
        variant = BY_NAME[row.name]
        begun = row_of(variant, self.facts)
        if begun.reason is not None:
            return begun
        if row.memory_bytes is None:
            return begun if row.found_failure is None else begun.failed(row.found_failure)
        numbers = self._judged(row.numbers or UNKNOWN, variant.rounds_as)
        is_elsewhere = is_excused((row.name,), numbers, self.facts)
        return replace(
            begun,
            reason=None if numbers.is_offered or is_elsewhere else why_not_offered(numbers, self.facts),
            memory_bytes=row.memory_bytes,
            numbers=numbers,
            draws_elsewhere=is_elsewhere,
            compile_seconds=row.compile_seconds if row.name == COMPILE else None,
        )

    def _raced(self, row: VariantRow, started: VariantRow) -> VariantRow:
        base, racing, rounds = self.base, self.of_rest, self.rounds
        if self._is_first(row):
            base, racing, rounds = TODAY, self.of_workers, self.rounds_of_workers
        if started.memory_bytes is not None:
            started = replace(started, beside=base)
        if not is_raced(started):
            return started
        # with a base, the evaluation compares with today's own training
        alike = [each for each in rounds if not base or each.stage is Stage.SELECTION]
        gain = self.at_workers.gain if base and self.at_workers is not None else None
        step_seconds = self.facts.today.step_seconds / (1.0 if gain is None else gain.value)
        found = with_speed(started, (row.name,), alike, racing, step_seconds)
        has_failed = any(each.failed == (row.name,) for each in rounds)
        return found.failed(row.found_failure or "") if has_failed else found


def together(chosen: Entry, numbers: Numbers | None, facts: Facts) -> tuple[Entry, str | None]:
    """Return what is left of what was chosen, and what is to be said of it where all together do not train the same."""
    name = f"{describe_entry(chosen)} together"
    if numbers is None:
        return chosen, f"{name}: {NOT_STARTED}" if len(chosen) > 1 else None
    if numbers.is_offered or is_excused(chosen, numbers, facts):
        return chosen, None
    return TODAY, f"{name}: {why_not_offered(numbers, facts)}"


def coarsest(names: Iterable[str]) -> str:
    order, wanted = ("fp32", "tf32", "bf16"), set(names)
    return max((each.rounds_as for each in VARIANTS if each.name in wanted), key=order.index, default=order[0])


def describe_entry(names: Iterable[str]) -> str:
    """Write "today" or "workers + fused"."""
    return " + ".join(names) or "today"
