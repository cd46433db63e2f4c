"""PURE: what rounds show of two entries: the ratios of their speeds, from the rounds that count.

An entry is a training with settings and a batch size: a comparison of sizes names it by its size, a race of changes by
what it changes. Only ratios within a round are compared. A block counts as disturbed where other work used the
machine's cores, and where it was `OUTLYING` slower than the fastest one of its entry, because disturbances only slow
down: that helps to choose, but would bias an interval, so an evaluation leaves it out. Disturbed blocks count only
where too few others are left: then by the time for which each training had a core, where that is known.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import fmean, quantiles
from typing import Generic, TypeVar

from ...facts.intervals import Interval, interval

E = TypeVar("E", bound=Hashable)

ENOUGH_QUIET = 3
"""The undisturbed rounds of two entries beside which their disturbed ones do not count."""
OUTLYING = math.log(1.15)
"""The logarithm of the ratio by which a disturbed block is slower than the fastest one of its entry."""
AGREEING_SPREAD = 1.25  # upper over lower quartile of the rounds' ratios; beyond it the rounds contradict each other


def mean_shares(shares: Iterable[tuple[E, float | None]]) -> dict[E, float]:
    """Return the mean share of an entry's blocks that garbage collections took: too rare for one block to show it.

    >>> mean_shares([("a", 0.0), ("a", 0.5), ("b", None)])
    {'a': 0.25, 'b': 0.0}
    """
    by_entry: dict[E, list[float]] = {}
    for entry, share in shares:
        by_entry.setdefault(entry, []).append(share or 0.0)
    return {entry: fmean(found) for entry, found in by_entry.items()}


@dataclass(frozen=True, slots=True)
class Round(Generic[E]):
    """A block or start of each entry, as logarithms of samples a second: by the clock, and by the time with a core.

    `disturbed` are the entries beside which other work used the cores, `held` those that were no start of their own.
    """

    clock: Mapping[E, float]
    computing: Mapping[E, float]
    disturbed: frozenset[E] = frozenset()
    held: frozenset[E] = frozenset()
    seconds: float = 0.0


class Ratios(Generic[E]):
    """The ratios that rounds show. As many as `enough_quiet` undisturbed ones of two entries are used alone."""

    def __init__(
        self, rounds: Sequence[Round[E]], *, enough_quiet: int = ENOUGH_QUIET, outlying: float = OUTLYING
    ) -> None:
        fastest: dict[E, float] = {}
        for each in rounds:
            for entry, value in each.clock.items():
                fastest[entry] = max(value, fastest.get(entry, -math.inf))
        self.rounds, self.enough_quiet = rounds, enough_quiet
        self.quiet = [
            frozenset(entry for entry, value in each.clock.items() if value > fastest[entry] - outlying)
            - each.disturbed
            for each in rounds
        ]

    def of(self, entry: E, other: E) -> list[float]:
        """Return the logarithms of how many times as fast `entry` was as `other`, of the rounds that count."""
        pair = {entry, other}
        both = self._both(entry, other)
        quiet = [each for each, calm in zip(self.rounds, self.quiet, strict=True) if pair <= calm]
        if len(quiet) < self.enough_quiet and (computing := self.computing(entry, other)):
            return computing
        return [each.clock[entry] - each.clock[other] for each in (quiet if len(quiet) >= self.enough_quiet else both)]

    def interval(self, entry: E, other: E) -> Interval:
        return interval(self.of(entry, other))

    def computing(self, entry: E, other: E) -> list[float]:
        """Return the ratios by the time for which each had a core; empty where none was disturbed, or not known."""
        pair, both = {entry, other}, self._both(entry, other)
        if not any(pair & each.disturbed for each in both) or not all(pair <= each.computing.keys() for each in both):
            return []
        return [each.computing[entry] - each.computing[other] for each in both]

    def between_starts(self, entry: E, other: E, run_to_run: float) -> float:
        """Return the standard deviation by which held starts differ, beyond what their rounds show."""
        both = self._both(entry, other)
        starts = min((sum(each not in r.held for r in both) for each in (entry, other)), default=0)
        return run_to_run / math.sqrt(max(starts, 1)) if any({entry, other} & r.held for r in both) else 0.0

    def _both(self, entry: E, other: E) -> list[Round[E]]:
        return [each for each in self.rounds if entry in each.clock and other in each.clock]


def interval_of_rounds(logarithms: Sequence[float]) -> Interval:
    """Compute the interval of the rounds' ratios, at least their middle half where they fall into two groups."""
    ratio = interval(logarithms)
    low, _, high = quantiles(logarithms, n=4)
    if high - low <= math.log(AGREEING_SPREAD):
        return ratio
    return Interval(min(low, ratio.low), ratio.value, max(high, ratio.high))


def is_load_lasting(
    rounds: Sequence[Round[E]], *, longer_than_seconds: float = 0.0, fewest_rounds: int = ENOUGH_QUIET
) -> bool:
    """Whether other work left no two entries of any of the latest rounds to compare: it is expected to stay."""
    latest = list(
        takewhile(lambda each: len(each.clock) - len(each.disturbed) < min(len(each.clock), 2), reversed(rounds))
    )
    return len(latest) >= fewest_rounds and sum(each.seconds for each in latest) > longer_than_seconds
