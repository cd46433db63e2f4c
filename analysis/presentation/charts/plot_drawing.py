"""A plot as coordinates: what templates/analysis/parts/plot.html writes out as SVG, colours by CSS class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.presentation.charts.drawing import BOTTOM, LEFT, RIGHT, TOP, Size, Tick
from analysis.presentation.charts.labels import Box, text_box
from analysis.presentation.charts.plots import Annotation, Plot, ReferenceLine, SeriesStyle, Trace

MARKER_PATHS = (
    "M-4 0A4 4 0 1 1 4 0A4 4 0 1 1-4 0Z",
    "M-3.6-3.6H3.6V3.6H-3.6Z",
    "M0-5 5 0 0 5-5 0Z",
    "M0-4.8 4.6 3.4H-4.6Z",
    "M0 4.8 4.6-3.4H-4.6Z",
    "M0-4.8 4.6-1.5 2.8 3.9H-2.8L-4.6-1.5Z",
    "M0-5.4 1.4-1.9 5.1-1.7 2.3.7 3.2 4.4 0 2.4-3.2 4.4-2.3.7-5.1-1.7-1.4-1.9Z",
)
"""In the order of plots.MARKERS, around the origin."""
LIMIT_RISE, MEDIAN_RISE = 6, 10
"""How far words stand above their line, in pixels: a median has points on it."""
CROSS_PATH = "M-6-3.6-3.6-6 0-2.4 3.6-6 6-3.6 2.4 0 6 3.6 3.6 6 0 2.4-3.6 6-6 3.6-2.4 0Z"


@dataclass(frozen=True, slots=True)
class Shape:
    """A marker at its place, with the words for it."""

    x: str
    y: str
    text: str


@dataclass(frozen=True, slots=True)
class TraceDrawing:
    """One run: its classes, its line (empty: none), its markers, its crosses."""

    css_class: str
    marker_path: str
    line: str
    dots: tuple[Shape, ...]
    crosses: tuple[Shape, ...]
    is_dense: bool


@dataclass(frozen=True, slots=True)
class LevelDrawing:
    """A horizontal line and, where it has words, their place."""

    css_class: str
    start: str
    end: str
    at: str
    text: str
    text_x: str
    text_y: str


@dataclass(frozen=True, slots=True)
class MarkDrawing:
    """A vertical line; its text is empty where it would cover the one before. Steps have theirs above the plot."""

    css_class: str
    at: str
    text: str
    text_y: str


@dataclass(frozen=True, slots=True)
class PlotDrawing:
    """Everything the SVG template needs."""

    size: Size
    left: int
    right: int
    top: int
    bottom: int
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    levels: tuple[LevelDrawing, ...]
    marks: tuple[MarkDrawing, ...]
    front: str
    traces: tuple[TraceDrawing, ...]


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

    def x(self, value: float) -> float:
        return LEFT + self.plot.x.fraction(value) * (self.right - LEFT)

    def y(self, value: float) -> float:
        return self.bottom - self.plot.y.fraction(value) * (self.bottom - TOP)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{_px(self.x(x))},{_px(self.y(y))}" for x, y in points)


def draw_plot(plot: Plot, size: Size) -> PlotDrawing:
    """Lay the plot out in a picture of the given size."""
    frame = _Frame(plot, size)
    x_ticks = plot.x.ticks(_most_x_ticks(plot, size))
    return PlotDrawing(
        size=size,
        left=LEFT,
        right=frame.right,
        top=TOP,
        bottom=frame.bottom,
        x_ticks=tuple(Tick(_px(frame.x(value)), text) for value, text in x_ticks),
        y_ticks=tuple(Tick(_px(frame.y(value)), text) for value, text in plot.y.ticks(6)),
        levels=_levels(plot.levels, frame),
        marks=_marks(plot.marks, frame),
        front=frame.path(plot.front),
        traces=tuple(_trace(trace, frame) for trace in plot.traces),
    )


def css_class(look: SeriesStyle, *, is_estimate: bool = False) -> str:
    """The classes that carry a run's colour and dashes, as static/css/comparison.css has them."""
    hollow = " is-estimate" if is_estimate else ""
    return f"series-{look.colour} dash-{look.dash}{hollow}"


def _most_x_ticks(plot: Plot, size: Size) -> int:
    """As many as have room: a memory or a date takes more of it than a batch size."""
    return size.x_ticks if plot.x.quantity == "batch" else size.x_ticks * 2 // 3


def _trace(trace: Trace, frame: _Frame) -> TraceDrawing:
    points = [(dot.x, dot.y) for dot in trace.dots]
    return TraceDrawing(
        css_class=css_class(trace.look, is_estimate=trace.is_estimate),
        marker_path=MARKER_PATHS[trace.look.marker],
        line=frame.path(points) if trace.has_line else "",
        dots=tuple(Shape(_px(frame.x(dot.x)), _px(frame.y(dot.y)), dot.text) for dot in trace.dots),
        crosses=tuple(Shape(_px(frame.x(dot.x)), _px(frame.y(dot.y)), dot.text) for dot in trace.crosses),
        is_dense=trace.is_dense,
    )


def _levels(levels: Sequence[ReferenceLine], frame: _Frame) -> tuple[LevelDrawing, ...]:
    """Words stand above the left end of their line, and move right past the words of a line close by."""
    taken: list[Box] = []
    return tuple(_level(level, frame, taken) for level in sorted(levels, key=lambda level: level.value))


def _level(level: ReferenceLine, frame: _Frame, taken: list[Box]) -> LevelDrawing:
    start = LEFT if level.start is None else frame.x(level.start)
    end = frame.right if level.end is None else frame.x(level.end)
    at = frame.y(level.value)
    y = at - (LIMIT_RISE if level.is_limit else MEDIAN_RISE)
    box = text_box(level.text, start + 4, y, "start")
    box = text_box(level.text, min(box.left, frame.right - (box.right - box.left)), y, "start")
    for other in taken:
        if box.overlap(other):
            box = text_box(level.text, other.right + 12, y, "start")
    taken.append(box)
    kind = "limit" if level.is_limit else "median"
    return LevelDrawing(kind, _px(start), _px(end), _px(at), level.text, _px(box.left), _px(y))


def _marks(marks: Sequence[Annotation], frame: _Frame) -> tuple[MarkDrawing, ...]:
    """Steps speak above the plot, the others inside at its foot, so that the two never meet."""
    drawn, free_from = [], {True: 0.0, False: 0.0}
    for mark in sorted(marks, key=lambda mark: mark.x):
        at, y = frame.x(mark.x), TOP - 7 if mark.is_step else frame.bottom - 6
        box = text_box(mark.text, at, y, "middle")
        has_room = box.left >= free_from[mark.is_step]
        free_from[mark.is_step] = box.right if has_room else free_from[mark.is_step]
        kind = "step" if mark.is_step else "mark"
        drawn.append(MarkDrawing(kind, _px(at), mark.text if has_room else "", _px(y)))
    return tuple(drawn)


def _px(value: float) -> str:
    return f"{value:.1f}"
