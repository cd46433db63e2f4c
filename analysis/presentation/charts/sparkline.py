"""PURE: a run's memory against its batch size, or a figure over runs, small enough to stand in a line of a list.

The points were chosen when the run ended (`runs/result_columns.py`) and stored on it: a list never reads probes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, MARGIN = 96, 26, 3
LEAST_SPAN = 0.1
"""Share of a figure that the height of its line spans at least: what hardly changes looks flat."""

Point = Sequence[int]
"""A batch size and its bytes, as a pair or as the list that JSON makes of it."""


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Coordinates of the line and of its last point, in a picture of WIDTH x HEIGHT."""

    line: str
    end: tuple[str, str]


def sparkline(points: Sequence[Point], limit_bytes: int | None) -> Sparkline | None:
    """Batch sizes on a log2 axis, bytes from nothing to the limit. One point is no line: None."""
    if len(points) < 2:
        return None
    top = max(limit_bytes or 0, *(held for _, held in points))
    first, last = math.log2(points[0][0]), math.log2(points[-1][0])
    across, down = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN

    def place(size: int, held: int) -> tuple[str, str]:
        x = MARGIN + across * (math.log2(size) - first) / (last - first)
        return f"{x:.1f}", f"{MARGIN + down * (1 - held / top):.1f}"

    places = [place(*point) for point in points]
    return Sparkline(" ".join(f"{x},{y}" for x, y in places), places[-1])


def line_over_runs(figures: Sequence[float]) -> Sparkline | None:
    """Draw a figure over runs, one step for each, from its least to its most. One run is no line: None."""
    if len(figures) < 2:
        return None
    least, most = min(figures), max(figures)
    span = max(most - least, most * LEAST_SPAN)
    middle, across, down = (least + most) / 2, WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
    places = [
        (f"{MARGIN + across * place / (len(figures) - 1):.1f}", f"{HEIGHT / 2 - down * (figure - middle) / span:.1f}")
        for place, figure in enumerate(figures)
    ]
    return Sparkline(" ".join(f"{x},{y}" for x, y in places), places[-1])
