"""Small pictures: a line in a line of a list, from points chosen when the run ended; and days as bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date

from django.utils.safestring import SafeString

from analysis.charts.drawing import element, joined, polyline

WIDTH, HEIGHT, MARGIN = 96, 26, 3
LEAST_SPAN = 0.1
"""Share of a figure that the height of its line spans at least: what hardly changes looks flat."""

DAYS_WIDTH, DAYS_HEIGHT = 360, 64
GAP_FRACTION = 0.25
"""Share of a day's width that is left free between two bars."""
LEAST_HEIGHT = 1.5
"""Pixels of a bar above zero: less would not be seen."""
DATES_MAX = 3

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


def day_bars(fractions: Sequence[float], texts: Sequence[str], css_class: str = "") -> SafeString:
    """Draw shares from 0 to 1 from left to right, each with its tooltip; a day without any has no bar."""
    step = DAYS_WIDTH / max(1, len(fractions))
    bars = []
    for place, (fraction, text) in enumerate(zip(fractions, texts, strict=True)):
        if fraction <= 0:
            continue
        height = max(LEAST_HEIGHT, min(1.0, fraction) * DAYS_HEIGHT)
        where = {"x": step * (place + GAP_FRACTION / 2), "width": step * (1 - GAP_FRACTION)}
        title = element("title", text)
        bars.append(element("rect", title, class_=css_class, y=DAYS_HEIGHT - height, height=height, **where))
    return joined(bars)


def day_marks(days: Sequence[date]) -> SafeString:
    """Name a few days of the axis at the middle of their bars; the last one is today."""
    step = -(-len(days) // DATES_MAX)
    named = [(place, day) for place, day in enumerate(days) if place % step == 0 and place < len(days) - step / 2]
    marks = [
        (f"{(place + 0.5) / len(days) * 100:.2f}%", f"{day:%d %b}".lstrip("0"), "middle" if place else "start")
        for place, day in named
    ]
    marks.append(("100%", "today", "end"))
    return joined(element("text", text, x=x, y=12, text_anchor=anchor) for x, text, anchor in marks)
