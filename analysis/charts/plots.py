"""The content of a chart, before it is drawn: axes, traces, limits, marks, labels, and its table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from analysis.charts.axes import Axis
from engine.facts.figure_kinds import EMULATED, ESTIMATED, MEASURED

MARKERS = (
    "M-4 0A4 4 0 1 1 4 0A4 4 0 1 1-4 0Z",
    "M-3.6-3.6H3.6V3.6H-3.6Z",
    "M0-5 5 0 0 5-5 0Z",
    "M0-4.8 4.6 3.4H-4.6Z",
    "M0 4.8 4.6-3.4H-4.6Z",
    "M0-4.8 4.6-1.5 2.8 3.9H-2.8L-4.6-1.5Z",
    "M0-5.4 1.4-1.9 5.1-1.7 2.3.7 3.2 4.4 0 2.4-3.2 4.4-2.3.7-5.1-1.7-1.4-1.9Z",
)
"""Circle, square, diamond, triangle up and down, pentagon, star: paths around the origin."""
RING = "M-7 0A7 7 0 1 1 7 0A7 7 0 1 1-7 0Z"
COLOURS, DASHES = 8, 5
"""Numbers of styles in static/css/charts.css; people with colour blindness can distinguish the colours, too."""


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """The style of one line in all charts: classes of static/css/charts.css and a marker's path."""

    css_class: str
    marker_path: str = MARKERS[0]

    @classmethod
    def of(cls, place: int) -> SeriesStyle:
        """Choose a style by place: neighbours differ in colour; only places 280 (8 x 7 x 5) apart look the same."""
        return cls(f"series-{place % COLOURS} dash-{place % DASHES}", MARKERS[place % len(MARKERS)])

    def classes(self, *, is_predicted: bool) -> str:
        return f"{self.css_class} is-estimate" if is_predicted else self.css_class


@dataclass(frozen=True, slots=True)
class PlotPoint:
    x: float
    y: float
    text: str
    interval: tuple[float, float] | None = None
    """Its confidence interval, drawn as an error bar; None where it is unknown."""
    is_hollow: bool = False
    """Whether its timing was not steady, or was one timing without an interval beside others that have one."""
    is_on_line: bool = True
    """Whether the line goes through it: not through a point that may be wrong by much."""
    is_joined: bool = True
    """Whether a line joins it to the point before."""


DENSE_FROM = 60
"""Whether the points of a line would overlap and are drawn smaller."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One line. `crosses` are sizes that ran out of memory, on the limit they hit."""

    name: str
    style: SeriesStyle
    dots: tuple[PlotPoint, ...]
    crosses: tuple[PlotPoint, ...] = ()
    has_line: bool = True
    is_predicted: bool = False
    is_emulated: bool = False
    note: str = ""
    """A note next to the name in the legend."""

    @property
    def kind(self) -> str:
        return ESTIMATED if self.is_predicted else EMULATED if self.is_emulated else MEASURED

    @property
    def css_class(self) -> str:
        return self.style.classes(is_predicted=self.is_predicted)

    @property
    def is_dense(self) -> bool:
        return len(self.dots) >= DENSE_FROM

    @property
    def has_hollow(self) -> bool:
        return any(dot.is_hollow for dot in self.dots)

    @property
    def strokes(self) -> list[list[PlotPoint]]:
        joined: list[list[PlotPoint]] = []
        for dot in (dot for dot in self.dots if self.has_line and dot.is_on_line):
            if joined and dot.is_joined:
                joined[-1].append(dot)
            else:
                joined.append([dot])
        return [stroke for stroke in joined if len(stroke) > 1]


@dataclass(frozen=True, slots=True)
class PointLabel:
    """A text for one point. `ring_class` is the ring around it, empty where it has none."""

    x: float
    y: float
    text: str
    css_class: str = "label-mark"
    ring_class: str = ""


@dataclass(frozen=True, slots=True)
class ReferenceLine:
    """A horizontal line with its text: a card's limit, the median of a stretch of time, or a threshold for alerts."""

    value: float
    text: str
    look: str = "limit"
    """CSS class of the line: limit, median or alert. Its text has the class "label-" + look."""
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True, slots=True)
class Annotation:
    """A vertical line with a short text: a step above the plot, anything else at its foot."""

    x: float
    text: str
    is_step: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """The chart as a table: one header, rows of equal length. `numbers` are the columns aligned as figures."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()


def table_of(
    traces: Sequence[Trace], head: str, text: Callable[[float], str], notes: Mapping[int, str] | None = None
) -> Table:
    """Tabulate lines: a row for each x of theirs, a column for each line, and one of `notes` on an x."""
    columns = [
        {dot.x: text(dot.y) for dot in trace.dots} | {cross.x: "out of memory" for cross in trace.crosses}
        for trace in traces
    ]
    rows = [
        (f"{x:,}", *(column.get(x, "–") for column in columns), *([notes.get(int(x), "")] if notes else []))
        for x in sorted({x for column in columns for x in column})
    ]
    names = (head, *(trace.name for trace in traces))
    return Table((*names, "Note") if notes else names, tuple(rows), frozenset(range(len(names))))


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart's whole content; `front` is the Pareto line; the first `labels` get the best places."""

    key: str
    title: str
    sentence: str
    x: Axis
    y: Axis
    traces: tuple[Trace, ...]
    table: Table
    levels: tuple[ReferenceLine, ...] = ()
    marks: tuple[Annotation, ...] = ()
    labels: tuple[PointLabel, ...] = ()
    front: tuple[tuple[float, float], ...] = ()

    @property
    def needs_legend(self) -> bool:
        """Whether a legend is needed: not for a single line that the axis names already."""
        return len(self.traces) > 1 or self.has_hollow or self.has_intervals or any(t.note for t in self.traces)

    @property
    def has_hollow(self) -> bool:
        return any(trace.has_hollow for trace in self.traces)

    @property
    def has_intervals(self) -> bool:
        return any(dot.interval for trace in self.traces for dot in trace.dots)

    @property
    def kinds(self) -> str:
        """The kinds of the points: "measured", "measured and estimated"."""
        return " and ".join(sorted({trace.kind for trace in self.traces}, reverse=True))


def pareto_front(points: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return the pairs of memory and speed that no other beats in both: (1, 5) (2, 9) (3, 8) -> (1, 5) (2, 9)."""
    front: list[tuple[float, float]] = []
    for memory, speed in sorted(set(points), key=lambda point: (point[0], -point[1])):
        if not front or speed > front[-1][1]:
            front.append((memory, speed))
    return tuple(front)
