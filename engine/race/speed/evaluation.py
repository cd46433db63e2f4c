"""PURE: the evaluation of what a selection chose: when its rounds suffice, and what they show.

It has new rounds only, so an entry that led by luck has no advantage. Rounds of one process, or of starts that are
held, do not show how starts differ: then intervals are wider by `run_to_run`, less so the more starts there were.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic

from ...facts.intervals import ENOUGH_ROUNDS, NORMAL_95, Interval
from ...facts.speed_rounds import SpeedClaim
from .order import order_of
from .ratios import E, Ratios, Round, interval_of_rounds

MEASURABLE_SPREAD = 1.10  # upper end over lower end of a ratio's interval; beyond it no figure is claimed
CLAIMABLE_HALF_WIDTH = math.log(MEASURABLE_SPREAD) / 2
LOOK_EVERY = 3  # rounds between two looks at the interval: each look is a chance to stop by accident
OF_STARTS = 1 / 2
"""An interval of the rounds half as wide as that between starts widens it by an eighth: more rounds tell little."""
FEWEST_DISTURBED = 2  # rounds, where it ends because other work stays


@dataclass(frozen=True)
class Evaluation(Generic[E]):
    """Rounds that timed all of what is evaluated. `shares_cores`: disturbed ones show no factor, an order at most.

    `start_to_start` is what ratios of two starts are known to differ by where each block is a start of its own.
    """

    rounds: Sequence[Round[E]]
    shares_cores: bool
    run_to_run: float
    start_to_start: float = 0.0

    @cached_property
    def ratios(self) -> Ratios[E]:
        return Ratios(self.rounds, enough_quiet=ENOUGH_ROUNDS, outlying=math.inf)

    @property
    def quiet_rounds(self) -> int:
        return sum(not each.disturbed for each in self.rounds)

    @property
    def is_disturbed(self) -> bool:
        """Whether too few rounds were quiet, on cores that other work uses, to show a factor."""
        return self.shares_cores and self.quiet_rounds < ENOUGH_ROUNDS

    def ratio(self, entry: E, other: E) -> Interval:
        """Return the logarithm of how many times as fast `entry` is, as these starts of both show it."""
        ratios = self.ratios.of(entry, other)
        least = 0.0 if self.deviation(entry, other) else NORMAL_95 * self.start_to_start / math.sqrt(len(ratios))
        return interval_of_rounds(ratios).at_least(least)

    def deviation(self, entry: E, other: E) -> float:
        return self.ratios.between_starts(entry, other, self.run_to_run)

    def gain(self, entry: E, other: E) -> Interval:
        """Return how many times as fast `entry` is, as other starts may be too."""
        return self.ratio(entry, other).widened(self.deviation(entry, other)).exp()

    def is_narrow(self, entry: E, other: E, half_width: float) -> bool:
        """Whether the rounds show a ratio that closely, or more closely than other starts would repeat it."""
        of_starts = OF_STARTS * NORMAL_95 * (self.deviation(entry, other) or self.start_to_start)
        return self.ratio(entry, other).half_width <= max(half_width, of_starts)

    def order(self, entry: E, today: E) -> SpeedClaim | None:
        """Return what disturbed rounds show of an entry and today's training; None while more of them may show it."""
        computing = self.ratios.computing(entry, today)
        if entry == today:
            return SpeedClaim.NO_GAIN if computing else SpeedClaim.NOTHING
        return order_of([each.clock[entry] - each.clock[today] for each in self.rounds], computing or None)

    def is_over(
        self,
        pairs: Iterable[tuple[E, E]],
        order: SpeedClaim | None,
        *,
        half_width: float | None,
        waits: bool,
        is_late: bool,
    ) -> bool:
        """Whether no further round is worth its time: the ratios of `pairs` are known, or will not be.

        `half_width`: None where further starts may tell more. `waits`: rounds that nothing disturbs may still come.
        `is_late`: the time is up.
        """
        if is_late:
            return True
        if self.is_disturbed and not waits:
            return len(self.rounds) >= FEWEST_DISTURBED and order is not None
        if len(self.rounds) < ENOUGH_ROUNDS or len(self.rounds) % LOOK_EVERY:
            return False
        if waits and self.quiet_rounds < ENOUGH_ROUNDS:
            return False
        return half_width is not None and all(self.is_narrow(*pair, half_width) for pair in pairs)
