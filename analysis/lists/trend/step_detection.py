"""Detection of lasting changes in a series: stretches of equal height, and the steps between them.

    a step needs at least 4 points on each side (asv asks for more than three as well) and 3 % between the medians
    100 100 100 100 106 106 106 106   one step, at the fifth, +6 %
    100 100 100 100 106 106 106       none yet: three points may be chance
    100 100 100 150 100 100 100 100   none: one point is no stretch
    100 100 100 100 102 102 102 102   none: below the threshold
    100 x 4, 102 x 4, 104 x 4         one, at the ninth: small moves add up until they pass the threshold

Heights are compared by their logarithm, after single outliers were smoothed away by a median of three. Among all
ways to cut the series the cheapest is taken: squared distances from each stretch's mean, plus a price for each cut
that grows with the noise between neighbours. Then each cut moves to where the figures themselves change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median

from engine.facts.stats import NOISE_FRACTION

POINTS_PER_SIDE_MIN = 4
THRESHOLD = NOISE_FRACTION
_NOISE_FLOOR = 0.002
_PRICE = 4.0
"""Penalty per change point, in noise variance x log(n): twice BIC's."""
_MAD_TO_SIGMA = 1.4826 / math.sqrt(2)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Points from `start` up to, not including, `stop`, and their median."""

    start: int
    stop: int
    median: float


@dataclass(frozen=True, slots=True)
class Step:
    """A step at point `index`; `fraction` is the change from the last reported height, 0.06 is 6 % up."""

    index: int
    before: float
    after: float

    @property
    def fraction(self) -> float:
        return self.after / self.before - 1


def find_stretches(values: Sequence[float], grain: float = 0.0) -> list[Stretch]:
    """Cut the series, all above 0, where it jumps; `grain` is the least difference: 1 for whole samples."""
    if not values:
        return []
    heights = [math.log(value) for value in _without_spikes(values)]
    cuts = _cheapest_cuts(heights, _cut_price(values, grain))
    cuts = _far_enough_apart(_moved_to_edges(cuts, values))
    return [Stretch(start, stop, median(values[start:stop])) for start, stop in pairwise(cuts)]


def find_steps(stretches: Sequence[Stretch]) -> list[Step]:
    """Find stretches that differ by the threshold from the last reported height."""
    steps: list[Step] = []
    for stretch in stretches[1:]:
        height = steps[-1].after if steps else stretches[0].median
        if abs(stretch.median / height - 1) >= THRESHOLD:
            steps.append(Step(stretch.start, height, stretch.median))
    return steps


def _without_spikes(values: Sequence[float]) -> list[float]:
    """Take the median of each point and its neighbours, which keeps edges where they are."""
    inner = [median(values[index - 1 : index + 2]) for index in range(1, len(values) - 1)]
    return [values[0], *inner, values[-1]] if len(values) > 2 else list(values)


def _cut_price(values: Sequence[float], grain: float) -> float:
    """Price a cut by the noise. Rounding to a grain is noise, too: its deviation is the grain over the root of 12."""
    moves = [abs(math.log(after / before)) for before, after in pairwise(values)]
    rounding = grain / median(values) / math.sqrt(12)
    noise = max(_NOISE_FLOOR, rounding, median(moves) * _MAD_TO_SIGMA if moves else 0.0)
    return _PRICE * noise**2 * math.log(len(values) + 1)


def _cheapest_cuts(heights: Sequence[float], price: float) -> list[int]:
    """Find the ends of the stretches, 0 and the length among them: optimal partitioning, in the length squared."""
    sums = list(accumulate(heights, initial=0.0))
    squares = list(accumulate((height**2 for height in heights), initial=0.0))
    best, start_of = [0.0], [0]
    for stop in range(1, len(heights) + 1):
        starts = [0, *range(POINTS_PER_SIDE_MIN, stop - POINTS_PER_SIDE_MIN + 1)]
        costs = [best[s] + price + _spread(sums, squares, s, stop) for s in starts]
        best.append(min(costs))
        start_of.append(starts[costs.index(best[stop])])
    cuts = [len(heights)]
    while cuts[-1]:
        cuts.append(start_of[cuts[-1]])
    return cuts[::-1]


def _spread(sums: Sequence[float], squares: Sequence[float], start: int, stop: int) -> float:
    total = sums[stop] - sums[start]
    return squares[stop] - squares[start] - total**2 / (stop - start)


def _moved_to_edges(cuts: list[int], values: Sequence[float]) -> list[int]:
    """Put each cut where the distances from both medians are least: smoothing can shift it by a point."""
    moved = list(cuts)
    for position in range(1, len(cuts) - 1):
        start, stop = moved[position - 1], moved[position + 1]
        low, high = median(values[start : cuts[position]]), median(values[cuts[position] : stop])
        inside = range(start + 1, stop)
        costs = {cut: _distance(values[start:cut], low) + _distance(values[cut:stop], high) for cut in inside}
        moved[position] = min(costs, key=costs.__getitem__)
    return moved


def _far_enough_apart(cuts: list[int]) -> list[int]:
    chosen = [0]
    for cut in cuts[1:-1]:
        if min(cut - chosen[-1], cuts[-1] - cut) >= POINTS_PER_SIDE_MIN:
            chosen.append(cut)
    return [*chosen, cuts[-1]]


def _distance(values: Sequence[float], height: float) -> float:
    return sum(abs(value - height) for value in values)
