"""PURE: what follows from the starts and rounds of `tune --faster`: the rows, what races, and the answer.

Used by the run, and again by `answers.own_race` for a document of another machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ...race.field import TODAY, Entry, Field, NextRound, RacedRound, RaceVerdict
from ...race.numbers import OWN_FACTOR, Numbers, Sameness, is_hidden
from ...race.row import VariantRow
from ...race.rule import decide, known_ratio
from ...race.text import pays_after
from ...results.speed_rounds import SpeedClaim, Stage
from ...speed.claim import is_gain
from .facts import Facts
from .result import Today
from .variants import BY_NAME, COMPILE, CONFLICTS, VARIANTS, WORKERS, Variant

NOTHING_TIMED = RaceVerdict(
    chosen=TODAY, leader=TODAY, claim=SpeedClaim.NOTHING, gain=None, rounds=0, quiet_rounds=0, ended_early=True
)
GIVEN_UP = "other work disturbed every round, so the other changes were not tried"
TIME_IS_UP = "the time budget ended before all was tried"
FAILED = "it failed: "
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


def with_start(
    row: VariantRow,
    facts: Facts,
    *,
    beside: Entry,
    memory_bytes: int | None,
    numbers: Numbers,
    noise: float | None,
    compile_seconds: float | None,
) -> VariantRow:
    is_elsewhere = is_excused((row.name,), numbers, facts)
    return replace(
        row,
        reason=None if numbers.is_offered or is_elsewhere else why_not_offered(numbers, noise),
        beside=beside,
        memory_bytes=memory_bytes,
        numbers=numbers,
        draws_elsewhere=is_elsewhere,
        compile_seconds=compile_seconds if row.name == COMPILE else None,
    )


def _rows_draw_elsewhere(names: Entry, facts: Facts) -> bool:
    """Whether the rows may draw random numbers, and do so in other workers then, from other generators.

    What they draw in workers is not seen.
    """
    return WORKERS in names and (facts.noted.draws_random or facts.workers > 0)


def _masks_otherwise(names: Entry, numbers: Numbers, facts: Facts) -> bool:
    if not (facts.draws_masks and any(BY_NAME[name].masks_otherwise for name in names)):
        return False
    most = math.inf if facts.mask_noise is None else OWN_FACTOR * facts.mask_noise  # None: of an older version
    return numbers.largest_difference is not None and numbers.largest_difference <= most


def is_excused(names: Entry, numbers: Numbers, facts: Facts) -> bool:
    """Whether losses that differ say nothing, because of other random numbers; but a loss that is not finite does.

    Several changes with workers among them are compared with the workers alone, which draw the same.
    """
    if numbers.sameness is Sameness.DIFFERS and numbers.largest_difference is None:
        return False
    is_elsewhere = len(names) == 1 and _rows_draw_elsewhere(names, facts)
    return is_elsewhere or _masks_otherwise(names, numbers, facts)


def why_not_offered(numbers: Numbers, noise: float | None) -> str:
    if numbers.sameness is Sameness.UNKNOWN:
        return NOT_REPEATABLE if is_hidden(noise) else NO_LOSS
    return DIFFERS if numbers.largest_difference is not None else NOT_FINITE


def is_raced(row: VariantRow) -> bool:
    return row.reason is None and row.memory_bytes is not None and not BY_NAME[row.name].saves_memory_only


def race_waits_for_workers(today: Today, rows: Mapping[str, VariantRow]) -> bool:
    """Whether loader workers race alone first: while data is waited for, no other change can gain."""
    return today.is_limited_by_loader and WORKERS in rows and rows[WORKERS].reason is None


def field_of(names: Iterable[str], *, cores: int, shares_cores: bool, most_seconds: float = math.inf) -> Field:
    return Field(tuple(names), CONFLICTS, most_seconds=most_seconds, cores=cores, shares_cores=shares_cores)


def verdict_of(racing: Field, rounds: Sequence[RacedRound]) -> RaceVerdict:
    """Return the verdict of rounds after which nothing was timed any more: as if the time was up."""
    verdict = decide(replace(racing, most_seconds=0.0), rounds)
    assert isinstance(verdict, RaceVerdict)
    return verdict


def order_of_round(step: NextRound, number: int) -> tuple[Entry, ...]:
    """Return the order of the starts of a round: the reverse of the one before, so a slow drift meets all alike."""
    return step.entries[::-1] if number % 2 else step.entries


def with_speed(
    row: VariantRow, rounds: Sequence[RacedRound], racing: Field, *, base: Entry, step_seconds: float
) -> VariantRow:
    # with a base, the evaluation compares with today's own training
    alike = [each for each in rounds if not base or each.stage is Stage.SELECTION]
    speed, rough_speed = known_ratio((row.name,), alike, racing)
    steps = pays_after(row.compile_seconds, speed, step_seconds)
    return replace(row, speed=speed, rough_speed=rough_speed, pays_after_steps=steps)


def answer_of(at_workers: RaceVerdict | None, at_rest: RaceVerdict | None) -> tuple[RaceVerdict, Entry]:
    """Return the verdict that decides, and what it recommends."""
    base = TODAY if at_workers is None else at_workers.chosen
    if at_rest is None or (base and not (at_rest.is_found and adds_to(at_workers, at_rest))):
        return at_workers or NOTHING_TIMED, base
    return at_rest, (*base, *at_rest.chosen) if at_rest.is_found else TODAY


def adds_to(at_workers: RaceVerdict | None, at_rest: RaceVerdict) -> bool:
    if at_workers is None or at_workers.gain is None or at_rest.gain is None:
        return True
    alone, both = at_workers.gain, at_rest.gain
    return is_gain(both.value / alone.value, both.low / alone.value)


def step_seconds_on(base: Entry, today: Today, at_workers: RaceVerdict | None) -> float:
    """Return how long a step takes with the changes that the others are tried on top of."""
    gain = at_workers.gain if base and at_workers is not None else None
    return today.step_seconds if gain is None else today.step_seconds / gain.value


def together(chosen: Entry, numbers: Numbers | None, facts: Facts, noise: float | None) -> tuple[Entry, str | None]:
    """Return what is left of what was chosen, and what is to be said of it where all together do not train the same."""
    name = f"{describe_entry(chosen)} together"
    if numbers is None:
        return chosen, f"{name}: {NOT_STARTED}" if len(chosen) > 1 else None
    if numbers.is_offered or is_excused(chosen, numbers, facts):
        return chosen, None
    return TODAY, f"{name}: {why_not_offered(numbers, noise)}"


def coarsest(names: Iterable[str]) -> str:
    order, wanted = ("fp32", "tf32", "bf16"), set(names)
    return max((each.rounds_as for each in VARIANTS if each.name in wanted), key=order.index, default=order[0])


def describe_entry(names: Iterable[str]) -> str:
    """Write "today" or "workers + fused"."""
    return " + ".join(names) or "today"
