"""A plot as coordinates: what templates/analysis/parts/charts/drawing.html writes out as SVG, colours by CSS class.

Coordinates are text with a point, so that no locale can put a comma into an attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from analysis.presentation.charts.labels import Box, Label, Position, Room, around, label_at
from analysis.presentation.charts.plots import Plot, PlotPoint, ReferenceLine, Trace


@dataclass(frozen=True, slots=True)
class Size:
    """How large the picture is, in its own units; the narrow one is for phones, where text must stay readable."""

    name: str
    width: int
    height: int


WIDE, NARROW = Size("wide", 640, 320), Size("narrow", 340, 300)
LEFT, RIGHT, TOP, BOTTOM = 62, 18, 40, 46
INSET = 14
"""Pixels between the ends of the plot and those of its horizontal axis, so that no point lies on the frame."""
FOOT = 18
"""Pixels above the horizontal axis that are reserved for the texts of vertical marks, if there are any."""
DOT_RADIUS, DENSE_SCALE, RING_RADIUS = 5.0, 0.6, 8.0
BAR_REACH = 4.0
"""Pixels that the ends of an interval reach to either side."""


@dataclass(frozen=True, slots=True)
class Text:
    """A placed text. `at` is where on its axis the point or the tick stands; `leader` the path of a line to it."""

    x: str
    y: str
    anchor: str
    css_class: str
    text: str
    box: Box
    at: str = ""
    leader: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """A dot, a cross or a ring at its place, with its text and the path of its interval."""

    x: str
    y: str
    css_class: str
    text: str = ""
    interval: str = ""


@dataclass(frozen=True, slots=True)
class TraceDrawing:
    """One line: its classes, its strokes, its markers, its crosses."""

    css_class: str
    marker_path: str
    scale: str
    strokes: tuple[str, ...]
    dots: tuple[Shape, ...]
    crosses: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line across the plot: horizontal from x1 to x2 at y1, or vertical from y1 to y2 at x1."""

    css_class: str
    x1: str
    x2: str
    y1: str
    y2: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """Everything the SVG template needs.

    `fine_ticks` are for a picture that is zoomed; `places` are lines and shapes in pixels, to check the texts against.
    """

    size: Size
    left: int
    right: int
    top: int
    bottom: int
    x_ticks: tuple[Text, ...]
    fine_ticks: tuple[Text, ...]
    y_ticks: tuple[Text, ...]
    titles: tuple[Text, ...]
    rules: tuple[Rule, ...]
    front: str
    traces: tuple[TraceDrawing, ...]
    rings: tuple[Shape, ...]
    texts: tuple[Text, ...]
    places: Room

    @property
    def width(self) -> int:
        return self.right - self.left


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot and its pictures, the wide one first."""

    plot: Plot
    drawings: tuple[Drawing, ...]


def chart_of(plot: Plot) -> Chart:
    return Chart(plot, (draw(plot, WIDE), draw(plot, NARROW)))


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where the plot's inside lies in the picture."""

    plot: Plot
    size: Size

    @property
    def right(self) -> int:
        return self.size.width - RIGHT

    @property
    def bottom(self) -> int:
        return self.size.height - BOTTOM

    @property
    def floor(self) -> int:
        return self.bottom - (FOOT if any(not mark.is_step for mark in self.plot.marks) else 0)

    def x(self, value: float) -> float:
        return LEFT + INSET + self.plot.x.fraction(value) * (self.right - LEFT - 2 * INSET)

    def y(self, value: float) -> float:
        return self.floor - self.plot.y.fraction(value) * (self.floor - TOP)

    def place(self, point: PlotPoint) -> Position:
        return self.x(point.x), self.y(point.y)


def draw(plot: Plot, size: Size) -> Drawing:
    """Lay the plot out: first all that has its place, then the texts where they cover none of it."""
    frame = _Frame(plot, size)
    titles = (
        _text(label_at(plot.x.title, LEFT, frame.bottom + 38), "title"),
        _text(label_at(plot.y.title, 8, 14), "title"),
    )
    room = Room(Box(LEFT + 2, 2, size.width - 3, frame.bottom - 2), texts=[title.box for title in titles])
    rules = _rules(frame)
    _fill(room, frame, rules)
    shown = _x_ticks(frame)
    heights = [(frame.y(value), text) for value, text in plot.y.ticks]
    return Drawing(
        size=size,
        left=LEFT,
        right=frame.right,
        top=TOP,
        bottom=frame.bottom,
        x_ticks=shown,
        fine_ticks=_fine_ticks(frame, shown),
        y_ticks=tuple(
            replace(_text(label_at(text, LEFT - 8, at + 4, "end"), "tick"), at=_px(at)) for at, text in heights
        ),
        titles=titles,
        rules=tuple(rules),
        front=_path([(frame.x(x), frame.y(y)) for x, y in plot.front]),
        traces=tuple(_trace(trace, frame) for trace in plot.traces),
        rings=tuple(
            Shape(_px(frame.x(label.x)), _px(frame.y(label.y)), label.ring_class)
            for label in plot.labels
            if label.ring_class
        ),
        texts=tuple(_texts(room, frame)),
        places=room,
    )


def _fill(room: Room, frame: _Frame, rules: Iterable[Rule]) -> None:
    for trace in frame.plot.traces:
        radius = DOT_RADIUS * (DENSE_SCALE if trace.is_dense else 1)
        room.shapes += [around(frame.place(dot), radius) for dot in trace.dots]
        room.shapes += [around(frame.place(cross), RING_RADIUS) for cross in trace.crosses]
        for stroke in trace.strokes:
            room.lines += pairwise(map(frame.place, stroke))
        for dot in trace.dots:
            if dot.interval is not None:
                low, high = (frame.y(end) for end in dot.interval)
                x = frame.x(dot.x)
                room.shapes.append(Box(x - BAR_REACH, high - 1, x + BAR_REACH, low + 1))
    room.lines += pairwise([(frame.x(x), frame.y(y)) for x, y in frame.plot.front])
    for rule in rules:
        room.lines.append(((float(rule.x1), float(rule.y1)), (float(rule.x2), float(rule.y2))))
    rings = (label for label in frame.plot.labels if label.ring_class)
    room.shapes += [around((frame.x(label.x), frame.y(label.y)), RING_RADIUS) for label in rings]


def _texts(room: Room, frame: _Frame) -> Iterator[Text]:
    plot = frame.plot
    for mark in sorted(plot.marks, key=lambda mark: mark.x):
        # texts of steps stand above the plot, those of others inside at its foot, so that the two never meet
        x, y = frame.x(mark.x), TOP - 9 if mark.is_step else frame.bottom - 5
        label = label_at(mark.text, x, y, "middle", is_bold=True)
        if (beyond := label.box.right - (frame.size.width - 3)) > 0:
            label = label_at(mark.text, x - beyond, y, "middle", is_bold=True)
        if placed := room.place_first([label]):
            yield _text(placed, "text-step" if mark.is_step else "text-mark")
    for level in sorted(plot.levels, key=lambda level: level.value):
        if level.text and (placed := room.place_first(_along(level, frame))):
            yield _text(placed, f"label-{level.look}")
    for named in plot.labels:
        point = frame.x(named.x), frame.y(named.y)
        if placed := room.place_beside(named.text, point, is_bold=named.is_bold):
            yield replace(_text(placed, named.css_class), at=_px(point[0]))


def _along(level: ReferenceLine, frame: _Frame) -> Iterator[Label]:
    """Above the line from its left end on, then below it, then higher and lower."""
    at, (start, end) = frame.y(level.value), _ends(level, frame)
    for rise in (-6, 14, -16, 24, -28, 36):
        for x in range(int(start) + 4, max(int(end), int(start) + 8), 6):
            yield label_at(level.text, x, at + rise)
        yield label_at(level.text, min(end, frame.right), at + rise, "end")


def _x_ticks(frame: _Frame) -> tuple[Text, ...]:
    """All that have room: else every second one, every third, counted from the last."""
    ticks, every = frame.plot.x.ticks, 1
    while True:
        shown = [_x_tick(value, text, frame) for value, text in ticks[::-1][::every][::-1]]
        if not any(one.box.overlaps(other.box) for one, other in pairwise(shown)):
            return tuple(shown)
        every += 1


def _fine_ticks(frame: _Frame, shown: tuple[Text, ...]) -> tuple[Text, ...]:
    if frame.plot.x.quantity != "batch":
        return ()
    runs = {dot.x: f"{dot.x:,.0f}" for trace in frame.plot.traces for dot in (*trace.dots, *trace.crosses)}
    texts = {tick.text for tick in shown}
    return tuple(
        _x_tick(value, text, frame) for value, text in (dict(frame.plot.x.ticks) | runs).items() if text not in texts
    )


def _x_tick(value: float, text: str, frame: _Frame) -> Text:
    label = label_at(text, frame.x(value), frame.bottom + 20, "middle")
    beyond = max(0.0, label.box.right - (frame.size.width - 2))
    label = label_at(text, label.x - beyond, label.y, "middle")
    return replace(_text(label, "tick"), box=replace(label.box, right=label.box.right + 6), at=_px(frame.x(value)))


def _trace(trace: Trace, frame: _Frame) -> TraceDrawing:
    cross = "cross is-estimate" if trace.is_predicted else "cross"
    return TraceDrawing(
        css_class=trace.css_class,
        marker_path=trace.style.marker_path,
        scale=f" scale({DENSE_SCALE})" if trace.is_dense else "",
        strokes=tuple(_path(map(frame.place, stroke)) for stroke in trace.strokes),
        dots=tuple(_dot(dot, frame) for dot in trace.dots),
        crosses=tuple(replace(_dot(dot, frame), css_class=cross) for dot in trace.crosses),
    )


def _dot(dot: PlotPoint, frame: _Frame) -> Shape:
    x, y = frame.place(dot)
    interval = ""
    if dot.interval is not None:  # a line from its lower to its upper end, with a short one across both
        low, high = (frame.y(end) for end in dot.interval)
        ends = "".join(f"M{_px(x - BAR_REACH)} {_px(end)}H{_px(x + BAR_REACH)}" for end in (low, high))
        interval = f"M{_px(x)} {_px(low)}V{_px(high)}{ends}"
    return Shape(_px(x), _px(y), "dot is-hollow" if dot.is_hollow else "dot", dot.text, interval)


def _rules(frame: _Frame) -> list[Rule]:
    rules = []
    for level in frame.plot.levels:
        start, end = _ends(level, frame)
        at = _px(frame.y(level.value))
        rules.append(Rule(level.look, _px(start), _px(end), at, at))
    for mark in frame.plot.marks:
        at = _px(frame.x(mark.x))
        rules.append(Rule("step" if mark.is_step else "mark", at, at, _px(TOP), _px(frame.floor)))
    return rules


def _ends(level: ReferenceLine, frame: _Frame) -> tuple[float, float]:
    start = LEFT if level.start is None else frame.x(level.start)
    return start, frame.right if level.end is None else frame.x(level.end)


def _text(label: Label, css_class: str) -> Text:
    leader = ""
    if label.leader is not None:
        (x0, y0), (x1, y1) = label.leader
        leader = f"M{_px(x0)} {_px(y0)}L{_px(x1)} {_px(y1)}"
    return Text(_px(label.x), _px(label.y), label.anchor, css_class, label.text, label.box, leader=leader)


def _path(points: Iterable[Position]) -> str:
    return " ".join(f"{_px(x)},{_px(y)}" for x, y in points)


def _px(value: float) -> str:
    return f"{value:.1f}"
