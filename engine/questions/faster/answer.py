"""PURE: what a race of settings measured implies, in the run and, by `answers.race`, for others' documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from statistics import median
from typing import Any

from ...facts.savings import savings
from ...facts.speed_rounds import SpeedClaim
from ...race.answer import adds_to, verdict_of, with_speed
from ...race.field import TODAY, Entry, Field, RacedRound, mean_others_cores
from ...race.lines import lines_of
from ...race.numbers import is_hidden, judge_again
from ...race.row import Row
from ...race.rule import known_ratio
from ...race.variants import (
    CHANGES,
    Change,
    ChangeKind,
    NotTried,
    changes_to_try,
    field_of,
    label_of_entry,
    settings_of_entry,
)
from ...settings.spec import RunSpec
from ...settings.step_settings import ROUNDING_TOLERANCES
from .result import AtSize

BLOCK_SECONDS = 0.5
"""A block of steps lasts at least this long."""
AT_OWN_SIZE = "tried at a batch size of its own alone"
TIME_WAS_UP = "the time was up before it was timed"
"""Also of a change for which there was not even time to be admitted."""
NOT_REPEATABLE = "whether it trains the same cannot be told: today's training, repeated, gives other losses"
NO_SIZE_IN_TIME = "no size that keeps the reserve was found in time"


@dataclass(frozen=True, kw_only=True)
class RaceOfSettings:
    """What was measured of a race at today's batch size, and with sizes of their own; and what follows from it."""

    today: RunSpec
    wanted: tuple[str, ...]
    device_kind: str
    cores: int
    own_difference: float | None = None
    rows: Sequence[Row] = ()
    sizes: Sequence[AtSize] = ()
    rounds: Sequence[RacedRound] = ()
    rounds_of_sizes: Sequence[RacedRound] = ()

    @cached_property
    def changes(self) -> tuple[tuple[Change, ...], tuple[NotTried, ...]]:
        """Return the changes that race, and the ones without an effect here."""
        return changes_to_try(self.today, self.wanted)

    @cached_property
    def racing(self) -> Field:
        return field_of(self.today, self.changes[0], cores=self.cores, shares_cores=self.device_kind == "cpu")

    @cached_property
    def options(self) -> dict[str, AtSize]:
        return {each.option: each for each in self.sizes if each.batch_size > self.today.current_batch_size}

    @cached_property
    def racing_sizes(self) -> Field:
        conflicts = frozenset(map(frozenset, combinations(self.options, 2)))
        return replace(self.racing, changes=tuple(self.options), conflicts=conflicts)

    def members(self) -> dict[str, Any]:
        """Return the members of a result that follow from what was measured."""
        at_today = verdict_of(self.racing, self.rounds)
        at_own = verdict_of(self.racing_sizes, self.rounds_of_sizes) if self.options else None
        verdict, chosen, size = at_today, at_today.chosen, self.today.current_batch_size
        if at_own is not None and adds_to(at_today, at_own):
            option = self.options[at_own.chosen[0]]
            verdict, chosen, size = at_own, option.entry, option.batch_size
        gain = verdict.gain if verdict.is_found else None
        own_size = size if size != self.today.current_batch_size else None
        return {
            "batch_size": self.today.current_batch_size,
            "rows": tuple(map(self._row, self.rows)),
            "not_tried": (*self.changes[1], *self._not_reached()),
            "at_today": at_today,
            "sizes": tuple(map(self._at_size, self.sizes)),
            "at_own_size": at_own,
            "chosen_batch_size": size,
            "chosen": chosen,
            "gain": gain,
            "claim": verdict.claim,
            "savings": savings(self.today, gain, is_bound=verdict.claim is SpeedClaim.AT_LEAST),
            "lines": lines_of(chosen, self.today, self.device_kind, own_size) if verdict.is_found else (),
            "others_cores": mean_others_cores([*self.rounds, *self.rounds_of_sizes]),
        }

    def _not_reached(self) -> Iterator[NotTried]:
        """Yield the changes that have no row, because the time was up before they were admitted."""
        admitted = {row.entry for row in self.rows}
        for name in self.racing.changes:
            if (name,) not in admitted:
                yield NotTried(name, CHANGES[name].label, TIME_WAS_UP)

    def _row(self, row: Row) -> Row:
        entry, at = row.entry, next((each for each in self.sizes if each.entry == row.entry), None)
        kinds = {CHANGES[name].kind for name in entry}
        own, today = (_samples_per_second(each, self.rounds) for each in (entry, TODAY))
        samples = self.today.current_batch_size * self.today.accumulation_steps
        settings = settings_of_entry(entry)
        tolerance = tolerance_of(replace(self.today, **settings), self.today)
        row = replace(row, numbers=judge_again(row.numbers, self.own_difference, tolerance))
        row = replace(row, failure=self._failure(row))
        reason = why_not_raced(row, self.own_difference) if own is None else row.failure
        if own is None and reason is None and entry != TODAY:
            reason = TIME_WAS_UP if at is None else AT_OWN_SIZE
        return replace(
            with_speed(row, entry, self.rounds, self.racing, None if today is None else samples / today),
            label=label_of_entry(entry),
            kind=next((each.label for each in reversed(ChangeKind) if each in kinds), ""),
            settings=settings,
            largest_batch_size=None if at is None else at.largest_batch_size,
            samples_per_second=own,
            reason=reason,
        )

    def _failure(self, row: Row) -> str | None:
        """Return the failure; in documents of earlier builds the reason alone told it."""
        has_failed = row.memory_bytes is None or any(r.failed == row.entry for r in self.rounds)
        is_told = row.failure is not None or why_not_raced(row, self.own_difference) is not None
        is_worked_out = row.reason in (TIME_WAS_UP, AT_OWN_SIZE)
        return row.failure if is_told or is_worked_out or not has_failed else row.reason

    def _at_size(self, at: AtSize) -> AtSize:
        speed, rough_speed = known_ratio((at.option,), self.rounds_of_sizes, self.racing_sizes)
        has_failed = any(r.failed == (at.option,) for r in self.rounds_of_sizes)
        failure = at.failure or (at.reason if at.reason != NO_SIZE_IN_TIME else None)
        reason = failure or (None if at.batch_size else NO_SIZE_IN_TIME)
        is_known = (speed is not None or rough_speed is not None) and not has_failed
        return replace(at, speed=speed, rough_speed=rough_speed, failure=failure, reason=None if is_known else reason)


def why_not_raced(row: Row, own_difference: float | None) -> str | None:
    """Return why an admitted entry does not race: it failed, or does not train as today's."""
    if row.failure is not None or row.memory_bytes is None or row.entry == TODAY:
        return row.failure
    if is_hidden(own_difference):
        return NOT_REPEATABLE
    if row.numbers.is_offered:
        return None
    difference = row.numbers.largest_difference
    by = "" if difference is None else f" by up to {difference:.2g} of it"
    return f"its losses differ from today's{by}, more than its precision explains"


def tolerance_of(spec: RunSpec, today: RunSpec) -> float:
    return max(ROUNDING_TOLERANCES[each.precision] for each in (spec, today))


def _samples_per_second(entry: Entry, rounds: Sequence[RacedRound]) -> float | None:
    whole = (each for r in rounds if r.failed is None for each in r.timed)
    timed = [each.samples_per_second for each in whole if each.entry == entry]
    return median(timed) if timed else None
