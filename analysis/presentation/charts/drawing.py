"""A curve as coordinates: what templates/analysis/parts/curve.html writes out as SVG, colours by CSS class.

Coordinates are text with a point, so that no locale can put a comma into an attribute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.presentation.charts import labels
from analysis.presentation.charts.curves import Curve, MarkedPoint, Series
from analysis.presentation.charts.labels import Box, Label, Position
from analysis.presentation.charts.scales import (
    Log2Scale,
    Scale,
    binary_ticks,
    decimal_ticks,
    log2_scale,
    power_of_two_ticks,
)


@dataclass(frozen=True, slots=True)
class Size:
    """How large the picture is, in its own units; the narrow one is for phones, where text must stay readable."""

    name: str
    width: int
    height: int
    x_ticks: int


WIDE = Size("wide", 640, 320, 11)
NARROW = Size("narrow", 340, 300, 6)
LEFT, RIGHT, TOP, BOTTOM = 62, 18, 40, 46
RING_RADIUS = 7.0
BAR_REACH = 4.0
"""Pixels that the ends of an interval reach to either side."""
LEADER_FROM = 12.0
"""Pixels between a point and its label from which on a line has to join them."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A position on an axis and its text."""

    at: str
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A polyline with its dots."""

    css_class: str
    points: str
    dots: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A placed label, and how far it stands from the batch size it names (None: it names no point)."""

    x: str
    y: str
    anchor: str
    css_class: str
    text: str
    batch_size: int | None = None
    value: float | None = None
    offset: Position = (0.0, 0.0)
    leader: str | None = None
    """The path of a thin line to the point, where the label had to move away."""


@dataclass(frozen=True, slots=True)
class Ring:
    """The circle around a batch size of the answer."""

    x: str
    y: str
    css_class: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """Everything the SVG template needs."""

    size: Size
    left: int
    right: int
    top: int
    bottom: int
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]
    rings: tuple[Ring, ...]
    crosses: tuple[tuple[str, str], ...]
    limit_at: str | None
    bars: tuple[str, ...]
    """The path of each interval: a line from its lower to its upper end, with a short one across both."""
    texts: tuple[Text, ...]


def draw(curve: Curve, size: Size) -> Drawing:
    """Lay the curve out in a picture of the given size."""
    right, bottom = size.width - RIGHT, size.height - BOTTOM
    x = log2_scale(curve.batch_sizes, LEFT + 14, right - 14)
    y = Scale(0, _highest(curve), bottom, TOP)
    ticks = decimal_ticks(y.high) if curve.limit is None and curve.key != "memory" else binary_ticks(y.high)
    return Drawing(
        size=size,
        left=LEFT,
        right=right,
        top=TOP,
        bottom=bottom,
        x_ticks=tuple(Tick(_px(x(s)), f"{s:,}") for s in power_of_two_ticks(curve.batch_sizes, size.x_ticks)),
        y_ticks=tuple(Tick(_px(y(value)), curve.tick_text(value)) for value in ticks),
        lines=tuple(_line(series, x, y) for series in curve.series),
        rings=tuple(_ring(mark, x, y) for mark in curve.marks),
        crosses=tuple((_px(x(refused)), _px(_cross_y(curve, y))) for refused in curve.refused),
        limit_at=None if curve.limit is None else _px(y(curve.limit)),
        bars=tuple(_bar(x(batch_size), y(low), y(high)) for batch_size, low, high in curve.intervals),
        texts=_texts(curve, x, y, Box(4, 2, size.width - 4, bottom)),
    )


def _highest(curve: Curve) -> float:
    measured = max(value for series in curve.series for _, value in series.points)
    measured = max([measured, *(high for _, _, high in curve.intervals)])
    return max(measured, curve.limit) if curve.limit else (measured * 1.05 or 1.0)


def _cross_y(curve: Curve, y: Scale) -> float:
    """On the limit line; where no limit is known, on the top of the plot."""
    return y(y.high if curve.limit is None else curve.limit)


def _bar(x: float, low: float, high: float) -> str:
    ends = "".join(f"M{_px(x - BAR_REACH)} {_px(y)}H{_px(x + BAR_REACH)}" for y in (low, high))
    return f"M{_px(x)} {_px(low)}V{_px(high)}{ends}"


def _line(series: Series, x: Log2Scale, y: Scale) -> Line:
    places = tuple((_px(x(size)), _px(y(value))) for size, value in series.points)
    return Line(series.css_class, " ".join(f"{px},{py}" for px, py in places), places)


def _texts(curve: Curve, x: Log2Scale, y: Scale, inside: Box) -> tuple[Text, ...]:
    """The limit's label first (it has one place), then the refusal, then the marks around them."""
    fixed, obstacles = _limit_text(curve, y), _obstacles(curve, x, y)
    if fixed:
        obstacles.append(fixed.box)
    named = _named_points(curve, y.high)
    points = [(x(size), y(value)) for _, _, size, value in named]
    placed = labels.place([(text, point) for (text, *_), point in zip(named, points, strict=True)], obstacles, inside)
    texts = [Text(_px(fixed.x), _px(fixed.y), fixed.anchor, "label-limit", fixed.text)] if fixed else []
    for label, (_, css_class, size, value), (px, py) in zip(placed, named, points, strict=True):
        offset, leader = (label.x - px, label.y - py), _leader(label, (px, py))
        texts.append(Text(_px(label.x), _px(label.y), label.anchor, css_class, label.text, size, value, offset, leader))
    return tuple(texts)


def _named_points(curve: Curve, highest: float) -> list[tuple[str, str, int, float]]:
    """Text, CSS class, batch size and value of each label, the most important one first."""
    marks = sorted(curve.marks, key=lambda mark: not mark.is_recommended)
    named = [(m.text, "label-use" if m.is_recommended else "label-mark", m.batch_size, m.value) for m in marks]
    if curve.refused:
        top = highest if curve.limit is None else curve.limit
        named.insert(0, (f"{curve.refused[0]:,} out of memory", "label-refused", curve.refused[0], top))
    return named


def _ring(mark: MarkedPoint, x: Log2Scale, y: Scale) -> Ring:
    css_class = "ring ring-use" if mark.is_recommended else "ring"
    return Ring(_px(x(mark.batch_size)), _px(y(mark.value)), css_class)


def _leader(label: Label, point: Position) -> str | None:
    """From the point to the side of the label's box that faces it."""
    px, py = point
    near_x = min(max(px, label.box.left), label.box.right)
    near_y = min(max(py, label.box.top), label.box.bottom)
    if math.hypot(near_x - px, near_y - py) < LEADER_FROM:
        return None
    return f"M{_px(px)} {_px(py)}L{_px(near_x)} {_px(near_y)}"


def _limit_text(curve: Curve, y: Scale) -> Label | None:
    if curve.limit is None:
        return None
    text, x, base = f"limit {curve.tick_text(curve.limit)}", LEFT + 4.0, y(curve.limit) - 8
    return Label(text, x, base, "start", labels.text_box(text, x, base, "start"))


def _obstacles(curve: Curve, x: Log2Scale, y: Scale) -> list[Box]:
    boxes: list[Box] = []
    for series in curve.series:
        boxes += labels.along([(x(size), y(value)) for size, value in series.points])
    if curve.limit is not None:
        boxes += labels.along(_limit_line(curve, x, y), radius=1.0)
    boxes += [labels.around((x(mark.batch_size), y(mark.value)), RING_RADIUS) for mark in curve.marks]
    return boxes + [labels.around((x(refused), _cross_y(curve, y)), RING_RADIUS) for refused in curve.refused]


def _limit_line(curve: Curve, x: Log2Scale, y: Scale) -> list[Position]:
    return [(x.line.start, y(curve.limit or 0)), (x.line.end, y(curve.limit or 0))]


def _px(value: float) -> str:
    return f"{value:.1f}"
