"""PURE: parallel coordinates: an axis for each setting and figure, a line for each run, as coordinates for an SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from analysis.presentation.charts.plots import SeriesStyle, Table

WIDTH, HEIGHT = 1120, 340
LEFT, RIGHT, TOP, BOTTOM = 50, 90, 52, 14
TICKS_MAX = 6
"""As many different values are written out at an axis of numbers; of more only the ends and the middle."""
TICK_APART = 16.0
"""Pixels between two texts of an axis."""
TEXT_LENGTH, SHORTEST = 18, 5
CHARACTER, TICK_GAP = 7.2, 14.0
"""Pixels of a character, and between an axis and the texts on both sides."""
ABSENT = "–"


@dataclass(frozen=True, slots=True)
class Dimension:
    """A setting or a figure with its value for each run, in their order; None where a run has none.

    Numbers stand by their size. Texts stand at equal distances, in the order in which they first appear.
    """

    title: str
    values: tuple[float | str | None, ...]
    text: Callable[[float], str] = str
    bounds: frozenset[int] = frozenset()
    """Places of the runs whose value is only a lower bound: it is written with ≥."""
    text_of_bound: Callable[[float], str] | None = None

    @property
    def known(self) -> list[float | str]:
        return [value for value in dict.fromkeys(self.values) if value is not None]

    def write(self, value: float | str | None) -> str:
        return ABSENT if value is None else value if isinstance(value, str) else self.text(value)

    def write_at(self, index: int) -> str:
        """Write the value of the run at this place; a lower bound as "≥ 1.9x"."""
        value = self.values[index]
        if index not in self.bounds or value is None or isinstance(value, str):
            return self.write(value)
        return f"≥ {(self.text_of_bound or self.text)(value)}"

    def write_on_axis(self, value: float | str) -> str:
        """Write a value for the axis: as a bound where no run has it as a figure."""
        having = [index for index, each in enumerate(self.values) if each == value]
        return self.write_at(next((index for index in having if index not in self.bounds), having[0]))


@dataclass(frozen=True, slots=True)
class ParallelRun:
    """One run: its name, where its line leads, and its look."""

    name: str
    address: str
    style: SeriesStyle
    is_predicted: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """A text at an axis."""

    y: str
    text: str


@dataclass(frozen=True, slots=True)
class ParallelAxis:
    """A vertical axis with its title and its texts, which stand to its left at the last axis."""

    x: str
    title: str
    ticks: tuple[Tick, ...]


@dataclass(frozen=True, slots=True)
class ParallelLine:
    """A run's line. It has gaps where the run has no value, so it may be several strokes."""

    run: ParallelRun
    css_class: str
    strokes: tuple[str, ...]
    dots: tuple[tuple[str, str], ...]
    text: str


@dataclass(frozen=True, slots=True)
class ParallelChart:
    """The whole picture, and its content as a table. `same` are the values that all runs share and no axis shows."""

    axes: tuple[ParallelAxis, ...]
    lines: tuple[ParallelLine, ...]
    table: Table
    same: tuple[tuple[str, str], ...]
    width: int = WIDTH
    height: int = HEIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def parallel_chart(runs: Sequence[ParallelRun], dimensions: Sequence[Dimension]) -> ParallelChart | None:
    """Draw the dimensions in which the runs differ; None where these are fewer than two."""
    shown = [dimension for dimension in dimensions if len(dimension.known) > 1]
    if len(shown) < 2:
        return None
    step = (WIDTH - LEFT - RIGHT) / (len(shown) - 1)
    length = max(min(TEXT_LENGTH, int((step - TICK_GAP) / CHARACTER)), SHORTEST)
    places = [LEFT + step * index for index in range(len(shown))]
    same = tuple(
        (one.title, one.write(one.known[0])) for one in dimensions if len(one.known) == 1 and None not in one.values
    )
    return ParallelChart(
        axes=tuple(_axis(dimension, x, length) for dimension, x in zip(shown, places, strict=True)),
        lines=tuple(_line(run, index, shown, places) for index, run in enumerate(runs)),
        table=_table(runs, shown),
        same=same,
    )


def _height(dimension: Dimension, value: float | str) -> float:
    """Return where a value stands on its axis, in pixels from the top of the picture."""
    known = dimension.known
    numbers = [each for each in known if not isinstance(each, str)]
    if isinstance(value, str):
        fraction = 1 - known.index(value) / (len(known) - 1)
    else:
        fraction = (value - min(numbers)) / (max(numbers) - min(numbers))
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - fraction)


def _axis(dimension: Dimension, x: float, length: int) -> ParallelAxis:
    """Draw an axis whose texts have at most `length` characters, so that they end before the next axis."""
    marked = dimension.known
    if not isinstance(marked[0], str):
        numbers = sorted(value for value in marked if not isinstance(value, str))
        low, high = numbers[0], numbers[-1]
        marked = [high, low, *(numbers[1:-1] if len(numbers) <= TICKS_MAX else [numbers[len(numbers) // 2]])]
    heights: list[float] = []
    ticks = []
    for value in marked:
        y = _height(dimension, value)
        if all(abs(y - other) >= TICK_APART for other in heights):
            heights.append(y)
            text = dimension.write_on_axis(value)
            ticks.append(Tick(_px(y), text if len(text) <= length else f"{text[: length - 1]}…"))
    return ParallelAxis(_px(x), dimension.title, tuple(ticks))


def _line(run: ParallelRun, index: int, shown: Sequence[Dimension], places: Sequence[float]) -> ParallelLine:
    points: list[tuple[float, float] | None] = [
        None if (value := dimension.values[index]) is None else (x, _height(dimension, value))
        for dimension, x in zip(shown, places, strict=True)
    ]
    told = (f"{one.title} {one.write_at(index)}" for one in shown if one.values[index] is not None)
    return ParallelLine(
        run=run,
        css_class=run.style.classes(is_predicted=run.is_predicted),
        strokes=tuple(
            f"{_px(one[0])},{_px(one[1])} {_px(other[0])},{_px(other[1])}"
            for one, other in pairwise(points)
            if one is not None and other is not None
        ),
        dots=tuple((_px(point[0]), _px(point[1])) for point in points if point is not None),
        text=f"{run.name}: {', '.join(told)}",
    )


def _table(runs: Sequence[ParallelRun], shown: Sequence[Dimension]) -> Table:
    rows = [(run.name, *(one.write_at(index) for one in shown)) for index, run in enumerate(runs)]
    numbers = {place for place, one in enumerate(shown, start=1) if not isinstance(one.known[0], str)}
    return Table(("Run", *(one.title for one in shown)), tuple(rows), frozenset(numbers))


def _px(value: float) -> str:
    return f"{value:.1f}"
