"""PURE: a share for each day as bars with their dates, small enough for many to stand on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

WIDTH, HEIGHT = 360, 64
GAP_FRACTION = 0.25
"""Share of a day's width that is left free between two bars."""
LEAST_HEIGHT = 1.5
"""Pixels of a bar above zero: less would not be seen."""
DATES_MAX = 3


@dataclass(frozen=True, slots=True)
class DayBar:
    """One bar in a picture of WIDTH x HEIGHT, with the text of its tooltip."""

    x: str
    y: str
    width: str
    height: str
    text: str


def day_bars(fractions: Sequence[float], texts: Sequence[str]) -> tuple[DayBar, ...]:
    """Draw shares from 0 to 1 from left to right; a day without any has no bar."""
    step = WIDTH / max(1, len(fractions))
    bars = []
    for place, (fraction, text) in enumerate(zip(fractions, texts, strict=True)):
        if fraction <= 0:
            continue
        height = max(LEAST_HEIGHT, min(1.0, fraction) * HEIGHT)
        left, width = step * (place + GAP_FRACTION / 2), step * (1 - GAP_FRACTION)
        bars.append(DayBar(f"{left:.1f}", f"{HEIGHT - height:.1f}", f"{width:.1f}", f"{height:.1f}", text))
    return tuple(bars)


@dataclass(frozen=True, slots=True)
class DayMark:
    """A date below the bars, in percent of their width; `anchor` is the end of the text that stands there."""

    x: str
    text: str
    anchor: str = "middle"


def day_marks(days: Sequence[date]) -> tuple[DayMark, ...]:
    """Name a few days of the axis at the middle of their bars; the last one is today."""
    step = -(-len(days) // DATES_MAX)
    named = [(place, day) for place, day in enumerate(days) if place % step == 0 and place < len(days) - step / 2]
    middles = (
        DayMark(f"{(place + 0.5) / len(days) * 100:.2f}%", f"{day:%d %b}".lstrip("0"), "middle" if place else "start")
        for place, day in named
    )
    return (*middles, DayMark("100%", "today", "end"))
