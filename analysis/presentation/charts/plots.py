"""What a chart of several runs shows, before anything is drawn: axes, traces, limits, marks, and its table."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.presentation.charts.axes import Axis

COLOURS = ("#00ff88", "#56b4e9", "#e69f00", "#cc79a7", "#f0e442", "#d55e00", "#7f7fff", "#ffffff")
"""Told apart also with the three colour blindnesses; static/css/comparison.css has them as .series-0 to .series-7."""
MARKERS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """How one run is drawn, wherever it is drawn."""

    colour: int
    marker: int
    dash: int

    @classmethod
    def of(cls, run_id: int) -> SeriesStyle:
        """By the run's number alone, so that it keeps its colour in every comparison.

        8, 7 and 5 share no factor: only numbers that are a multiple of 280 apart look the same.
        """
        return cls(run_id % len(COLOURS), run_id % len(MARKERS), run_id % len(DASHES))


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """One measured or estimated point, with the words a pointer shows."""

    x: float
    y: float
    text: str


DENSE_FROM = 60
"""So many points of one run cover each other, and are drawn smaller."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The points of one run. `crosses` are sizes that ran out of memory, on the limit they hit."""

    name: str
    look: SeriesStyle
    dots: tuple[PlotPoint, ...]
    crosses: tuple[PlotPoint, ...] = ()
    has_line: bool = True
    is_estimate: bool = False
    note: str = ""
    """What the legend says beside the name."""

    @property
    def is_dense(self) -> bool:
        return len(self.dots) >= DENSE_FROM


@dataclass(frozen=True, slots=True)
class ReferenceLine:
    """A horizontal line with its words: a card's limit, or the median of a stretch of time."""

    value: float
    text: str
    is_limit: bool = True
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True, slots=True)
class Annotation:
    """A vertical line with a short text at its top."""

    x: float
    text: str
    is_step: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """The same as text: one head, rows of equal length."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart's whole content. `front` is a line through the points that nothing else beats."""

    key: str
    title: str
    sentence: str
    x: Axis
    y: Axis
    traces: tuple[Trace, ...]
    table: Table
    levels: tuple[ReferenceLine, ...] = ()
    marks: tuple[Annotation, ...] = ()
    front: tuple[tuple[float, float], ...] = ()

    @property
    def has_crosses(self) -> bool:
        return any(trace.crosses for trace in self.traces)

    @property
    def has_estimates(self) -> bool:
        return any(trace.is_estimate for trace in self.traces)

    @property
    def kinds(self) -> str:
        """ "measured", "estimated" or both: what the points are."""
        kinds = {"estimated" if trace.is_estimate else "measured" for trace in self.traces}
        return " and ".join(sorted(kinds, reverse=True))
