"""PURE: whether the memory after each step grows, how fast, and at which step it will end: against noise.

A cache that fills, an allocator's steps and rows of other lengths rise, too: they stop. So growth is claimed only where
nearly all later parts of a run lie above earlier ones, and its second half rises as its first.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from ..text.units import MIB

WARM_UP = 0.25
"""The part of the steps that is left out: caches fill there."""
BLOCKS, LEAST_STEPS = 12, 100
RISING_PAIRS, KEEPS_RISING = 0.9, (0.5, 2.0)
"""The share of pairs of parts that rise; the slope of the second half in that of the first, and the likely slopes in
their median."""
LEAST_RISE_FRACTION, LEAST_RISE_BYTES = 0.005, 2 * MIB
"""A smaller rise over all parts is none."""
LIKELY = (0.1, 0.9)


@dataclass(frozen=True, slots=True)
class Growth:
    """Bytes a step, with the interval of the slopes between parts of the run."""

    bytes_per_step: float
    low: float
    high: float
    last_step: int
    left_bytes: int
    """From the peak to the limit."""

    @property
    def ends_at(self) -> tuple[int, int, int]:
        """Return the step at which the peak reaches the limit, with the earliest and the latest that are likely."""
        slopes = (self.bytes_per_step, self.high, self.low)
        at = (self.last_step + round(self.left_bytes / slope) for slope in slopes)
        expected, earliest, latest = at
        return expected, earliest, latest


def growth_of(samples: Sequence[Sequence[float]], left_bytes: int) -> Growth | None:
    """Find growth in samples of (step, time, bytes held, ...); None where there is none, or too little is known."""
    last = int(samples[-1][0]) if samples else 0
    kept = [(each[0], each[2]) for each in samples if each[0] > WARM_UP * last]
    if last < LEAST_STEPS or len(kept) < 2 * BLOCKS:
        return None
    size = len(kept) / BLOCKS
    blocks = [kept[round(n * size) : round((n + 1) * size)] for n in range(BLOCKS)]
    points = [(statistics.median(s for s, _ in each), statistics.median(b for _, b in each)) for each in blocks]
    slopes = sorted(_slopes(points))
    slope = statistics.median(slopes)
    rise = points[-1][1] - points[0][1]
    if slope <= 0 or rise < max(LEAST_RISE_BYTES, LEAST_RISE_FRACTION * points[0][1]):
        return None
    if sum(each > 0 for each in slopes) < RISING_PAIRS * len(slopes):
        return None
    first, second = (statistics.median(_slopes(half)) for half in (points[: BLOCKS // 2], points[BLOCKS // 2 :]))
    if first <= 0 or not KEEPS_RISING[0] <= second / first <= KEEPS_RISING[1]:
        return None
    low, high = (slopes[round(share * (len(slopes) - 1))] for share in LIKELY)
    is_steady = KEEPS_RISING[0] * slope <= low and high <= KEEPS_RISING[1] * slope
    return Growth(slope, low, high, last, max(0, left_bytes)) if is_steady else None


def _slopes(points: Sequence[tuple[float, float]]) -> list[float]:
    return [(b2 - b1) / (s2 - s1) for (s1, b1), (s2, b2) in combinations(points, 2) if s2 > s1]
