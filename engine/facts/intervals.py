"""PURE: an estimate with its 95 % interval, from rounds that were measured side by side.

In a round every batch size runs one block, in random order. Other work disturbs both sizes of a pair with the same
probability, so the logarithm of their ratio is distributed symmetrically around the truth. The signed-rank interval
requires no more: no normal distribution, no steady machine. It is exact from six rounds on, needs no random numbers,
and up to 29 % of outlying rounds do not move it far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

CONFIDENCE = 0.95
NORMAL_95 = 1.96  # standard deviations: a normal error is smaller in 95 of 100 cases
ENOUGH_ROUNDS = 6  # with five, no rank interval reaches 95 %: two times 1/2**5 is 6 %


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure and the range that holds the truth in 95 of 100 such measurements."""

    low: float
    value: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    @property
    def spread(self) -> float:
        """The upper end over the lower one: 1.1 is a range of 10 %."""
        return self.high / self.low

    def widened(self, deviation: float) -> Interval:
        """Add a normal error of standard deviation `deviation`, which the values of one measurement cannot show."""
        more = (NORMAL_95 * deviation) ** 2
        below, above = (math.sqrt((self.value - end) ** 2 + more) for end in (self.low, self.high))
        return Interval(self.value - below, self.value, self.value + above)

    def at_least(self, half_width: float) -> Interval:
        """Return it as wide to each side as that: values that agree by luck show less than is known of their spread."""
        return Interval(min(self.low, self.value - half_width), self.value, max(self.high, self.value + half_width))

    def exp(self) -> Interval:
        return Interval(math.exp(self.low), math.exp(self.value), math.exp(self.high))


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Compute the Hodges-Lehmann centre of `values` with its signed-rank interval; of too few values, their range."""
    ordered = sorted(values)
    means = sorted((a + b) / 2 for i, a in enumerate(ordered) for b in ordered[i:])
    cut = _cut(len(ordered), confidence)
    return Interval(means[cut], median(means), means[-1 - cut])


@lru_cache(maxsize=1024)
def _cut(count: int, confidence: float) -> int:
    """Return how many of the pairwise means lie outside on each side, by the exact distribution of the rank sum."""
    ways = [1]
    for rank in range(1, count + 1):
        longer = ways + [0] * rank
        for total, number in enumerate(ways):
            longer[total + rank] += number
        ways = longer
    allowed, reached, cut = (1 - confidence) / 2 * 2**count, 0, 0
    while reached + ways[cut] <= allowed:
        reached += ways[cut]
        cut += 1
    return max(cut - 1, 0)
