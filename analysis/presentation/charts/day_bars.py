"""PURE: a share for each day as bars with their dates, small enough for many to stand on one page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from django.utils.safestring import SafeString

from analysis.presentation.charts.drawing import element, joined

WIDTH, HEIGHT = 360, 64
GAP_FRACTION = 0.25
"""Share of a day's width that is left free between two bars."""
LEAST_HEIGHT = 1.5
"""Pixels of a bar above zero: less would not be seen."""
DATES_MAX = 3


def day_bars(fractions: Sequence[float], texts: Sequence[str], css_class: str = "") -> SafeString:
    """Draw shares from 0 to 1 from left to right, each with its tooltip; a day without any has no bar."""
    step = WIDTH / max(1, len(fractions))
    bars = []
    for place, (fraction, text) in enumerate(zip(fractions, texts, strict=True)):
        if fraction <= 0:
            continue
        height = max(LEAST_HEIGHT, min(1.0, fraction) * HEIGHT)
        where = {"x": step * (place + GAP_FRACTION / 2), "width": step * (1 - GAP_FRACTION)}
        title = element("title", text)
        bars.append(element("rect", title, class_=css_class, y=HEIGHT - height, height=height, **where))
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
