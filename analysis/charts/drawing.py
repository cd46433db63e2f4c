"""A plot as SVG, the same on every screen and in a file: colours come by CSS class, texts where they have room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, pairwise

from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from analysis.charts.labels import AIR, LETTER, RING_RADIUS, Box, Label, Position, Room, beside, text_width
from analysis.charts.plots import Plot, PlotPoint, ReferenceLine, Trace

WIDTH, HEIGHT = 480, 320
RIGHT, TOP, BOTTOM = 24, 44, 54
INSET = 14
"""Units between the ends of the plot and those of its horizontal axis, so that no point lies on the frame."""
FOOT = 22
"""Units above the horizontal axis that are reserved for the texts of vertical marks, if there are any."""
DOT_RADIUS, DENSE_SCALE = 5.0, 0.6
BAR_REACH = 4.0
"""Units that the ends of an interval reach to either side."""
CROSS = "M-6-3.6-3.6-6 0-2.4 3.6-6 6-3.6 2.4 0 6 3.6 3.6 6 0 2.4-3.6 6-6 3.6-2.4 0Z"


def picture(plot: Plot) -> SafeString:
    """Write the whole SVG of a page, with its title and its sentence for those who do not see it."""
    title, sentence = f"{plot.key}-picture-title", f"{plot.key}-picture-desc"
    return element(
        "svg",
        element("title", plot.title, id=title),
        element("desc", plot.sentence, id=sentence),
        draw(plot),
        class_="curve",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{title} {sentence}",
    )


def draw(plot: Plot) -> SafeString:
    """Write the elements of a plot: first the shapes, which have fixed places, then the texts in the free space."""
    canvas = _Canvas(plot)
    shapes = (*canvas.axes(), *canvas.rules(), *canvas.lines_and_points())
    return joined((*shapes, *canvas.texts()))


class _Canvas:
    """A plot while it is drawn: where its values stand, and the room that is left for texts."""

    def __init__(self, plot: Plot) -> None:
        self.plot, self.room = plot, Room()
        self.left = max(text_width(text, LETTER) for _, text in plot.y.ticks) + AIR + 8
        self.right, self.bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        self.floor = self.bottom - (FOOT if any(not mark.is_step for mark in plot.marks) else 0)

    def x(self, value: float) -> float:
        return self.left + INSET + self.plot.x.fraction(value) * (self.right - self.left - 2 * INSET)

    def y(self, value: float) -> float:
        return self.floor - self.plot.y.fraction(value) * (self.floor - TOP)

    def place(self, point: PlotPoint) -> Position:
        return self.x(point.x), self.y(point.y)

    def axes(self) -> Iterator[SafeString]:
        whole = Box(0, 0, WIDTH, HEIGHT)
        for value, text in self.plot.y.ticks:
            at = self.y(value)
            yield polyline("gridline", [(self.left, at), (self.right, at)])
            yield _text(Label(text, self.left - 8, at + 5, "tick", "end"))
        yield polyline("axis", [(self.left, self.bottom), (self.right, self.bottom)])
        yield from self._placed([Label(self.plot.y.title, 4, 16, "title")], whole)
        yield from self._placed([Label(self.plot.x.title, self.left, self.bottom + 46, "title")], whole)
        yield from map(_text, self._x_ticks())

    def _x_ticks(self) -> list[Label]:
        """Take all that have room: else every second one, every third, counted from the last, which ends the axis."""
        for every in count(1):
            ticks = self.plot.x.ticks[::-1][::every]
            last = WIDTH - AIR - text_width(ticks[0][1], LETTER) / 2  # where a wide one still lies in the picture
            labels = [Label(text, min(self.x(at), last), self.bottom + 24, "tick", "middle") for at, text in ticks]
            if not any(one.box.overlaps(other.box) for one, other in pairwise(labels)):
                return labels
        raise AssertionError

    def rules(self) -> Iterator[SafeString]:
        for level in self.plot.levels:
            start, end = self._ends(level)
            at = self.y(level.value)
            yield self._obstacle(level.look, [(start, at), (end, at)])
        for mark in self.plot.marks:
            at = self.x(mark.x)
            yield self._obstacle("step" if mark.is_step else "mark", [(at, TOP), (at, self.floor)])

    def lines_and_points(self) -> Iterator[SafeString]:
        """Draw the lines with their dots; over all of them the rings, the intervals and the crosses."""
        if self.plot.front:
            yield self._obstacle("front", [(self.x(x), self.y(y)) for x, y in self.plot.front])
        yield from map(self._trace, self.plot.traces)
        for label in self.plot.labels:
            if label.ring_class:
                x, y = self.x(label.x), self.y(label.y)
                self.room.take_around((x, y), RING_RADIUS + 1)
                yield element("circle", class_=label.ring_class, cx=x, cy=y, r=RING_RADIUS)
        for trace in self.plot.traces:
            intervals = [self._interval(dot, *dot.interval) for dot in trace.dots if dot.interval]
            if intervals:
                yield element("g", *intervals, class_=f"trace {trace.css_class}")
            look = "cross is-estimate" if trace.is_predicted else "cross"
            yield from (self._marker(look, cross, CROSS, RING_RADIUS) for cross in trace.crosses)

    def texts(self) -> Iterator[SafeString]:
        """Name the marks, the levels, and last the points, which have the most places to choose from."""
        inside = Box(self.left, 0, WIDTH, self.bottom - 1)
        for mark in sorted(self.plot.marks, key=lambda mark: mark.x):
            # those of steps stand above the plot, others at its foot: the two never meet
            look, y = ("text-step", TOP - 8) if mark.is_step else ("text-mark", self.bottom - 5)
            yield from self._placed(
                [Label(mark.text, self.x(mark.x), y, look, end) for end in ("middle", "end")], inside
            )
        for level in sorted(self.plot.levels, key=lambda level: level.value):
            if level.text:
                yield from self._placed(self._along(level), inside)
        for named in self.plot.labels:
            point = self.x(named.x), self.y(named.y)
            yield from self._placed(beside(named.text, point, named.css_class, inside), inside)

    def _placed(self, places: Iterable[Label], inside: Box) -> Iterator[SafeString]:
        if label := self.room.place(places, inside):
            if label.leader:
                yield polyline("leader", label.leader)
            yield _text(label)

    def _along(self, level: ReferenceLine) -> Iterator[Label]:
        """Yield places above the line from its left end on, then below it, then higher and lower."""
        at, (start, end), look = self.y(level.value), self._ends(level), f"label-{level.look}"
        for rise in (-6, 18, -24, 36):
            for x in range(int(start) + 4, max(int(end), int(start) + 8), 24):
                yield Label(level.text, x, at + rise, look)
            yield Label(level.text, min(end, self.right), at + rise, look, "end")

    def _ends(self, level: ReferenceLine) -> Position:
        start = self.left if level.start is None else self.x(level.start)
        return start, self.right if level.end is None else self.x(level.end)

    def _obstacle(self, css_class: str, points: Sequence[Position]) -> SafeString:
        """Draw a line that no text covers."""
        for start, end in pairwise(points):
            self.room.take_line(start, end)
        return polyline(css_class, points)

    def _trace(self, trace: Trace) -> SafeString:
        scale = DENSE_SCALE if trace.is_dense else 1.0
        strokes = [self._obstacle("", [self.place(dot) for dot in stroke]) for stroke in trace.strokes]
        dots = [
            self._marker("dot is-hollow" if dot.is_hollow else "dot", dot, trace.style.marker_path, DOT_RADIUS, scale)
            for dot in trace.dots
        ]
        return element("g", *strokes, *dots, class_=f"trace {trace.css_class}")

    def _marker(self, css_class: str, point: PlotPoint, path: str, radius: float, scale: float = 1.0) -> SafeString:
        x, y = self.place(point)
        self.room.take_around((x, y), radius * scale)
        where = f"translate({x:.1f} {y:.1f})" + (f" scale({scale})" if scale != 1 else "")
        return element("path", element("title", point.text), class_=css_class, transform=where, d=path)

    def _interval(self, dot: PlotPoint, low: float, high: float) -> SafeString:
        x, bottom, top = self.x(dot.x), self.y(low), self.y(high)
        lines = [((x, bottom), (x, top)), *(((x - BAR_REACH, y), (x + BAR_REACH, y)) for y in (bottom, top))]
        for start, end in lines:
            self.room.take_line(start, end)
        path = "".join(f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" for (x0, y0), (x1, y1) in lines)
        return element("path", class_="error-bar", d=path)


def polyline(css_class: str, points: Iterable[Position]) -> SafeString:
    return element("polyline", class_=css_class, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points))


def _text(label: Label) -> SafeString:
    return element("text", label.text, class_=label.css_class, x=label.x, y=label.y, text_anchor=label.anchor)


def element(name: str, *content: str, **attributes: str | float) -> SafeString:
    """Write an element. Numbers have a point in every locale; `class_` is class, `text_anchor` text-anchor."""
    written = {
        key.rstrip("_").replace("_", "-"): f"{value:.1f}" if isinstance(value, float) else value
        for key, value in attributes.items()
        if value != ""
    }
    return format_html("<{0}{1}>{2}</{0}>", name, flatatt(written), joined(content))


def joined(parts: Iterable[str]) -> SafeString:
    return format_html_join("", "{}", ((part,) for part in parts))
