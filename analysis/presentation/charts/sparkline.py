"""A run's memory against its batch size, or a figure over runs, small enough to stand in a line of a list.

The points were chosen when the run ended (`runs/result_columns.py`) and stored on it: a list never reads probes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from django.utils.safestring import SafeString

from analysis.presentation.charts.drawing import element, polyline

WIDTH, HEIGHT, MARGIN = 96, 26, 3
LEAST_SPAN = 0.1
"""Share of a figure that the height of its line spans at least: what hardly changes looks flat."""

Point = Sequence[int]
"""A batch size and its bytes, as a pair or as the list that JSON makes of it."""


def sparkline(points: Sequence[Point], limit_bytes: int | None, label: str) -> SafeString:
    """Draw batch sizes on a log2 axis, bytes from nothing to the limit. Needs two points."""
    top = max(limit_bytes or 0, *(held for _, held in points))
    first, last = math.log2(points[0][0]), math.log2(points[-1][0])
    limit = polyline("limit", [(0, MARGIN), (WIDTH, MARGIN)])
    return _picture((((math.log2(size) - first) / (last - first), held / top) for size, held in points), label, limit)


def line_over_runs(figures: Sequence[float], label: str) -> SafeString:
    """Draw a figure over runs, one step for each, from its least to its most. Needs two."""
    least, most = min(figures), max(figures)
    span = max(most - least, most * LEAST_SPAN)
    low = (least + most - span) / 2
    return _picture(((at / (len(figures) - 1), (each - low) / span) for at, each in enumerate(figures)), label)


def _picture(fractions: Iterable[tuple[float, float]], label: str, *behind: SafeString) -> SafeString:
    """Draw a line and its last point; fractions are of the width from the left, and of the height from below."""
    across, down = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
    places = [(MARGIN + across * x, MARGIN + down * (1 - y)) for x, y in fractions]
    end = element("circle", cx=places[-1][0], cy=places[-1][1], r=2)
    size: dict[str, str | float] = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "width": WIDTH, "height": HEIGHT}
    return element("svg", *behind, polyline("", places), end, class_="sparkline", role="img", aria_label=label, **size)
