"""PURE: what rounds that other work disturbed show of two entries, by the logarithms of their ratios.

On cores that others use no factor is known by the clock: they delay the threads of a step whenever they synchronise,
which slows small batches down two or three times more, and single blocks by any amount. Which of two is faster is
known where every round says so by more than that. `benchmarks/timing_simulation.py` chose the constants: fewer than 1
in 1,000 of such orders are false.

The time for which the thread that trains had a core leaves these delays out, where threads that wait for each other
sleep. Its ratio is off by `COMPUTING_DEVIATION` (`benchmarks/computing_time.py`; with threads that spin three times as
much), so it shows smaller gains, and that there is none of `LEAST_GAIN`. It leaves out, too, what a training waits for:
so the clock must not contradict it by more than a load explains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from ...facts.intervals import ENOUGH_ROUNDS, Interval, interval
from ...facts.speed_rounds import SpeedClaim
from .claim import CLEARLY_FASTER

LEAST_RATIO = 3.0
"""How many times as fast it has to be in every round: one round below it breaks the order."""
ROUNDS = 10
CLEAR_RATIO = 8.0
CLEAR_ROUNDS = 6
"""So many rounds suffice where it is `CLEAR_RATIO` times as fast in each of them."""
LEAST_GAIN = 1.5
"""By the time that each had a core: a smaller gain is not claimed, and only a larger one is excluded."""
COMPUTING_DEVIATION = 0.1
CONTRADICTION = 2.0
"""How many times larger or smaller than the ratio of these times that of the clock may be, in the middle round."""


def order_of(clock: Sequence[float], computing: Sequence[float] | None) -> SpeedClaim | None:
    """Return AHEAD, NO_GAIN of `LEAST_GAIN`, or NOTHING; None while open. `computing`: ratios by time with a core."""
    if computing and len(computing) >= ENOUGH_ROUNDS:
        gain = gain_beside_others(computing)
        if abs(median(clock) - gain.value) <= math.log(CONTRADICTION):
            if gain.value < math.log(LEAST_GAIN):
                return SpeedClaim.NO_GAIN
            if min(computing) > 0 and gain.low > math.log(CLEARLY_FASTER):
                return SpeedClaim.AHEAD
    is_ahead_by_clock = is_ahead(clock)
    if is_ahead_by_clock is None or (computing and not is_ahead_by_clock and len(computing) < ROUNDS):
        return None
    return SpeedClaim.AHEAD if is_ahead_by_clock else SpeedClaim.NOTHING


def gain_beside_others(computing: Sequence[float]) -> Interval:
    """Return the logarithm of how many times as fast an entry is, by the time that each had a core."""
    return interval(computing).widened(COMPUTING_DEVIATION)


def is_ahead(clock: Sequence[float]) -> bool | None:
    """Return whether the clock shows the order; None while more rounds may show it.

    >>> from math import log
    >>> is_ahead([*map(log, [46, 12, 87, 31, 50, 18])])
    True
    >>> is_ahead([*map(log, [46, 12, 87, 31, 50, 5.2])]) is None
    True
    >>> is_ahead([*map(log, [46, 12, 2.1])])
    False
    """
    least = math.exp(min(clock, default=math.log(CLEAR_RATIO)))
    if least <= LEAST_RATIO:
        return False
    is_shown = len(clock) >= ROUNDS or (len(clock) >= CLEAR_ROUNDS and least > CLEAR_RATIO)
    return is_shown or None
