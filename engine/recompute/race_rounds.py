"""PURE: whether the rounds of a race are those that its rule called for, each after the ones before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ..race.field import TODAY, Field, NextRound, RacedRound, RaceVerdict
from ..results.intervals import ENOUGH_ROUNDS
from .contradiction import Contradiction

_MOST_LOOKS = 400
"""So many times that may have been left after a round are looked at."""
_MORE_TOGETHER = 4
"""A later generation of a race has at most so many entries more than there are changes."""

Rule = Callable[[Field, Sequence[RacedRound]], NextRound | RaceVerdict]


def first_wrong_round(
    path: str, racing: Field, rounds: Sequence[RacedRound], rule: Rule, is_of: Callable[[NextRound, int], bool]
) -> list[Contradiction]:
    """Return the first round that the rounds before it did not call for; an empty list where there is none.

    `is_of` says whether the round of a number timed what a step wants, in an order in which it could.
    """
    for number, each in enumerate(rounds):
        steps = _steps_after(racing, rounds[:number], rule)
        fits = (is_of(s, number) for s in steps if (s.stage, s.generation) == (each.stage, each.generation))
        if each.failed == TODAY or not any(fits):
            shown = [*(timed.entry for timed in each.timed), *([] if each.failed is None else [each.failed])]
            called_for = rule(racing, rounds[:number])
            wanted = called_for.entries if isinstance(called_for, NextRound) else None
            return [Contradiction(f"{path}[{number}]", (each.stage, each.generation, shown), wanted)]
    return []


def _steps_after(racing: Field, rounds: Sequence[RacedRound], rule: Rule) -> Iterator[NextRound]:
    """Yield the rounds that may follow: the next one, and those by which the race goes on where the time runs short."""
    whole = [each for each in rounds if each.timed and each.failed is None]
    took = [one.seconds or each.seconds / len(each.timed) for each in whole for one in each.timed]
    starts = [seconds for seconds in took if seconds > 0]  # a document may say anything
    most = (len(racing.changes) + _MORE_TOGETHER + 2 * ENOUGH_ROUNDS + 1) * max(starts, default=0.0)
    looks = math.ceil(min(2 * most / min(starts), _MOST_LOOKS)) if starts else 0
    spent = sum(each.seconds for each in rounds)
    for left in (math.inf, *(most * look / looks for look in range(looks, 0, -1))):
        if isinstance(step := rule(replace(racing, most_seconds=spent + left), rounds), NextRound):
            yield step
