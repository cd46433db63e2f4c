"""PURE: what follows from the rounds of a race: its rows, the sizes of their own, and the answer.

Used by the run, and again by `answers.race` for a document of another machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import median
from typing import Any

from ..race.field import TODAY, Entry, Field, RacedRound, RaceVerdict, mean_others_cores
from ..race.lines import lines_of
from ..race.rule import known_ratio
from ..race.text import pays_after
from ..race.variants import CHANGES, ChangeKind, NotTried, label_of_entry, settings_of_entry
from ..results.savings import savings
from ..results.speed_rounds import SpeedClaim
from ..settings.step_settings import ROUNDING_TOLERANCES
from ..spec import RunSpec
from .result import AtSize, Row

BLOCK_SECONDS = 0.5
"""A block of steps lasts at least this long."""
AT_OWN_SIZE = "tried at a batch size of its own alone"
TIME_WAS_UP = "the time was up before it was timed"
"""Also of a change for which there was not even time to be admitted."""


def concluded(
    spec: RunSpec,
    device_kind: str,
    at_today: RaceVerdict,
    at_own_size: RaceVerdict | None,
    sizes: Sequence[AtSize],
    rounds: Sequence[RacedRound],
) -> dict[str, Any]:
    """Return the members of a result that follow from its verdicts, and from all its rounds."""
    today, verdict, chosen, size = spec.current_batch_size, at_today, at_today.chosen, spec.current_batch_size
    if at_own_size is not None and at_own_size.is_found:
        known, own = at_today.gain, at_own_size.gain
        # otherwise the other batch size is not shown to add
        if not at_today.is_found or (known is not None and own is not None and own.low > known.value):
            option = options_of(sizes, today)[at_own_size.chosen[0]]
            verdict, chosen, size = at_own_size, option.entry, option.batch_size
    gain = verdict.gain if verdict.is_found else None
    return {
        "batch_size": today,
        "at_today": at_today,
        "sizes": tuple(sizes),
        "at_own_size": at_own_size,
        "chosen_batch_size": size,
        "chosen": chosen,
        "gain": gain,
        "claim": verdict.claim,
        "savings": savings(spec, gain, is_bound=verdict.claim is SpeedClaim.AT_LEAST),
        "lines": lines_of(chosen, spec, device_kind, size if size != today else None) if verdict.is_found else (),
        "others_cores": mean_others_cores(rounds),
    }


def options_of(sizes: Iterable[AtSize], batch_size: int) -> dict[str, AtSize]:
    return {each.option: each for each in sizes if each.batch_size > batch_size}


def field_of_sizes(options: Mapping[str, AtSize], *, cores: int, shares_cores: bool) -> Field:
    conflicts = frozenset(map(frozenset, combinations(options, 2)))
    return Field(tuple(options), conflicts, cores=cores, shares_cores=shares_cores)


def with_speed(at: AtSize, rounds: Sequence[RacedRound], field: Field) -> AtSize:
    speed, rough_speed = known_ratio((at.option,), rounds, field)
    return replace(at, speed=speed, rough_speed=rough_speed)


def not_reached(field: Field, admitted: Collection[Entry]) -> tuple[NotTried, ...]:
    """Return the changes that have no row, because the time was up before they were admitted."""
    return tuple(NotTried(each, CHANGES[each].label, TIME_WAS_UP) for each in field.changes if (each,) not in admitted)


def with_figures(row: Row, spec: RunSpec, rounds: Sequence[RacedRound], field: Field, sizes: Iterable[AtSize]) -> Row:
    entry = row.entry
    speed, rough_speed = known_ratio(entry, rounds, field) if entry != TODAY else (None, None)
    kinds = {CHANGES[name].kind for name in entry}
    own, today = (_samples_per_second(each, rounds) for each in (entry, TODAY))
    step_seconds = None if today is None else spec.current_batch_size * spec.accumulation_steps / today
    why_not_timed = AT_OWN_SIZE if entry in {each.entry for each in sizes} else TIME_WAS_UP
    return replace(
        row,
        label=label_of_entry(entry),
        kind=next((each.label for each in reversed(ChangeKind) if each in kinds), ""),
        settings=settings_of_entry(entry),
        speed=speed,
        rough_speed=rough_speed,
        samples_per_second=own,
        pays_after_steps=pays_after(row.compile_seconds, speed, step_seconds),
        reason=row.reason or (why_not_timed if own is None and entry != TODAY else None),
    )


def tolerance_of(spec: RunSpec, today: RunSpec) -> float:
    return max(ROUNDING_TOLERANCES[each.precision] for each in (spec, today))


def _samples_per_second(entry: Entry, rounds: Sequence[RacedRound]) -> float | None:
    timed = [each.samples_per_second for r in rounds for each in r.timed if each.entry == entry]
    return median(timed) if timed else None
