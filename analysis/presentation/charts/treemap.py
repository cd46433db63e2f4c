"""PURE: sizes as rectangles in a rectangle, each about as wide as high.

Positions are percentages of the whole, so that one drawing without a view box fits every width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

ASPECT = 2.0
"""Width over height of the picture for which the rectangles are made: between a wide screen and a phone."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One rectangle: `index` is of the size that it shows; the rest in percent of the picture."""

    index: int
    x: float
    y: float
    width: float
    height: float


def tiles(sizes: Sequence[float]) -> list[Tile]:
    """Return a rectangle for each size above zero: halves of nearly the same sum, divided across their longer side."""
    return list(
        _divided([(index, size) for index, size in enumerate(sizes) if size > 0], Tile(0, 0.0, 0.0, 100.0, 100.0))
    )


def _divided(sizes: Sequence[tuple[int, float]], whole: Tile) -> Iterator[Tile]:
    if len(sizes) < 2:
        yield from (replace(whole, index=index) for index, _ in sizes)
        return
    sums = list(accumulate(size for _, size in sizes))
    half = min(range(1, len(sizes)), key=lambda count: abs(sums[count - 1] - sums[-1] / 2))
    share = sums[half - 1] / sums[-1]
    if whole.width * ASPECT >= whole.height:
        first = replace(whole, width=whole.width * share)
        second = replace(whole, x=whole.x + first.width, width=whole.width - first.width)
    else:
        first = replace(whole, height=whole.height * share)
        second = replace(whole, y=whole.y + first.height, height=whole.height - first.height)
    yield from _divided(sizes[:half], first)
    yield from _divided(sizes[half:], second)
