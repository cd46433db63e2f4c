"""PURE: sizes as rectangles in a rectangle, each as near to a square as its neighbours allow.

Positions are percentages of the whole, so that one drawing without a view box fits every width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """Return a rectangle for each size above zero. Sizes in falling order give the squarest ones."""
    whole = sum(sizes)
    if whole <= 0:
        return []
    area = ASPECT / whole
    waiting = [(index, size * area) for index, size in enumerate(sizes) if size > 0]
    placed: list[Tile] = []
    x, y, width, height = 0.0, 0.0, ASPECT, 1.0
    while waiting:
        short = min(width, height)
        count = _row_length([size for _, size in waiting], short)
        row, waiting = waiting[:count], waiting[count:]
        total = sum(size for _, size in row)
        # the last row takes what is left: what is left of a tiny one was rounded
        thickness = total / short if waiting else max(width, height)
        along = 0.0
        for index, size in row:
            length = short * size / total
            if width >= height:
                placed.append(Tile(index, 100 * x / ASPECT, 100 * (y + along), 100 * thickness / ASPECT, 100 * length))
            else:
                placed.append(Tile(index, 100 * (x + along) / ASPECT, 100 * y, 100 * length / ASPECT, 100 * thickness))
            along += length
        if width >= height:
            x, width = x + thickness, width - thickness
        else:
            y, height = y + thickness, height - thickness
    return placed


def _row_length(sizes: Sequence[float], short: float) -> int:
    best, total = float("inf"), 0.0
    for count, size in enumerate(sizes, 1):
        total += size
        thickness = total / short
        worst = max(max(length / thickness, thickness / length) for s in sizes[:count] if (length := s / thickness))
        if worst > best:
            return count - 1
        best = worst
    return len(sizes)
