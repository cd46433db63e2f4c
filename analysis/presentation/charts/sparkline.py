"""PURE: a run's memory against its batch size, small enough to stand in a line of a list.

The points are chosen once, when the run ends, and stored on it: a list never reads probes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.result import Probe
from engine.stats import decisive_probes

POINTS_MAX = 12
WIDTH, HEIGHT, MARGIN = 96, 26, 3

Point = Sequence[int]
"""A batch size and its bytes, as a pair or as the list that JSON makes of it."""


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Coordinates of the line and of its last point, in a picture of WIDTH x HEIGHT."""

    line: str
    end: tuple[str, str]


def memory_points(probes: Iterable[Probe]) -> list[list[int]]:
    """Batch size and bytes of what fitted, thinned to POINTS_MAX with both ends kept."""
    fits = [(size, p.memory_bytes) for size, p in decisive_probes(probes).items() if p.fits]
    known = [[size, held] for size, held in fits if held is not None]
    if len(known) <= POINTS_MAX:
        return known
    step = (len(known) - 1) / (POINTS_MAX - 1)
    return [known[round(place * step)] for place in range(POINTS_MAX)]


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
