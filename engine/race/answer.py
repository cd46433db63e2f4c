"""PURE: what follows from the rounds of any race: its verdict, and the speed of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from .field import TODAY, Entry, Field, RacedRound, RaceVerdict
from .row import Figures
from .rule import decide, known_ratio
from .speed.claim import is_gain
from .text import pays_after

F = TypeVar("F", bound=Figures)


def verdict_of(racing: Field, rounds: Sequence[RacedRound]) -> RaceVerdict:
    """Return the verdict of rounds after which nothing was timed any more: as if the time was up."""
    verdict = decide(replace(racing, most_seconds=0.0), rounds)
    assert isinstance(verdict, RaceVerdict)
    return verdict


def with_speed(row: F, entry: Entry, rounds: Sequence[RacedRound], racing: Field, step_seconds: float | None) -> F:
    """Fill in how fast a row was, and when its compiling pays, where a step takes `step_seconds` without it."""
    speed, rough_speed = (None, None) if entry == TODAY else known_ratio(entry, rounds, racing)
    steps = pays_after(row.compile_seconds, speed, step_seconds)
    return replace(row, speed=speed, rough_speed=rough_speed, pays_after_steps=steps)


def adds_to(first: RaceVerdict, second: RaceVerdict) -> bool:
    """Whether a second race found something, and clearly faster than the first's: both are compared with today's."""
    if not first.is_found or not second.is_found:
        return second.is_found
    if first.gain is None or second.gain is None:
        return False
    return is_gain(second.gain.value / first.gain.value, second.gain.low / first.gain.value)
