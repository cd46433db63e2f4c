"""PURE: parallel coordinates: an axis for each setting and figure, a line for each run, as coordinates for an SVG.

They are drawn twice: with upright axes beside each other, and for a phone with level axes below each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from analysis.presentation.charts.plots import SeriesStyle, Table

WIDTH, HEIGHT = 1120, 340
LEFT, RIGHT, TOP, BOTTOM = 50, 90, 52, 14
NARROW_WIDTH, NARROW_STEP, NARROW_SIDE, NARROW_TOP, NARROW_BOTTOM = 324, 66, 8, 26, 24
TICKS_MAX = 6
"""As many different values are written out at an axis of numbers; of more only the ends and the middle."""
TICK_APART = 16.0
"""Pixels that a text takes of an upright axis."""
TEXT_LENGTH, SHORTEST = 18, 5
CHARACTER, TICK_GAP = 7.2, 14.0
"""Pixels of a character, and between an axis and the texts on both sides."""
ABSENT = "–"
Point = tuple[float, float]
Span = tuple[float, float]


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
class Label:
    """A text, and where it stands."""

    x: str
    y: str
    text: str
    anchor: str = "start"


@dataclass(frozen=True, slots=True)
class ParallelAxis:
    """An axis from one point to another, with its title and the texts of its values."""

    start: tuple[str, str]
    end: tuple[str, str]
    title: Label
    ticks: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class ParallelLine:
    """A run's line. It has gaps where the run has no value, so it may be several strokes."""

    run: ParallelRun
    css_class: str
    strokes: tuple[str, ...]
    dots: tuple[tuple[str, str], ...]
    text: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """The axes and lines in one of the two arrangements. `css_class` says for which width."""

    css_class: str
    width: int
    height: int
    axes: tuple[ParallelAxis, ...]
    lines: tuple[ParallelLine, ...]


@dataclass(frozen=True, slots=True)
class ParallelChart:
    """The whole picture, and its content as a table. `same` are the values that all runs share and no axis shows."""

    wide: Drawing
    narrow: Drawing
    table: Table
    same: tuple[tuple[str, str], ...]


class _Wide:
    """Upright axes from left to right; a value stands the higher, the larger it is."""

    css_class, width, height = "curve-wide", WIDTH, HEIGHT

    def __init__(self, axes: int) -> None:
        self.step = (WIDTH - LEFT - RIGHT) / (axes - 1)
        self.text_length = max(min(TEXT_LENGTH, int((self.step - TICK_GAP) / CHARACTER)), SHORTEST)

    def point(self, axis: int, fraction: float) -> Point:
        return LEFT + self.step * axis, TOP + (HEIGHT - TOP - BOTTOM) * (1 - fraction)

    def title(self, axis: int, text: str) -> Label:
        return Label(_px(LEFT + self.step * axis), "22.0", text, "middle")

    def tick(self, axis: int, fraction: float, text: str) -> tuple[Label, Span]:
        x, y = self.point(axis, fraction)
        return Label(_px(x + 7), _px(y - 7), text), (y - TICK_APART / 2, y + TICK_APART / 2)


class _Narrow:
    """Level axes below each other; a value stands the further to the right, the larger it is."""

    css_class, width, text_length = "curve-narrow", NARROW_WIDTH, TEXT_LENGTH

    def __init__(self, axes: int) -> None:
        self.height = NARROW_TOP + NARROW_STEP * (axes - 1) + NARROW_BOTTOM

    def point(self, axis: int, fraction: float) -> Point:
        return NARROW_SIDE + (NARROW_WIDTH - 2 * NARROW_SIDE) * fraction, float(NARROW_TOP + NARROW_STEP * axis)

    def title(self, axis: int, text: str) -> Label:
        _, y = self.point(axis, 0)
        return Label("0.0", _px(y - 12), text)

    def tick(self, axis: int, fraction: float, text: str) -> tuple[Label, Span]:
        x, y = self.point(axis, fraction)
        length = len(text) * CHARACTER
        start = min(max(x - length / 2, 0.0), NARROW_WIDTH - length)
        if start + length == NARROW_WIDTH:
            return Label(_px(NARROW_WIDTH), _px(y + 20), text, "end"), (start, NARROW_WIDTH)
        return Label(_px(start), _px(y + 20), text), (start, start + length)


Arrangement = _Wide | _Narrow


def parallel_chart(runs: Sequence[ParallelRun], dimensions: Sequence[Dimension]) -> ParallelChart | None:
    shown = [dimension for dimension in dimensions if len(dimension.known) > 1]
    if len(shown) < 2:
        return None
    same = tuple(
        (one.title, one.write(one.known[0])) for one in dimensions if len(one.known) == 1 and None not in one.values
    )
    return ParallelChart(
        wide=_drawing(_Wide(len(shown)), runs, shown),
        narrow=_drawing(_Narrow(len(shown)), runs, shown),
        table=_table(runs, shown),
        same=same,
    )


def _drawing(where: Arrangement, runs: Sequence[ParallelRun], shown: Sequence[Dimension]) -> Drawing:
    return Drawing(
        css_class=where.css_class,
        width=where.width,
        height=where.height,
        axes=tuple(_axis(where, place, dimension) for place, dimension in enumerate(shown)),
        lines=tuple(_line(where, run, index, shown) for index, run in enumerate(runs)),
    )


def _fraction(dimension: Dimension, value: float | str) -> float:
    """Return where a value stands on its axis: 0 at its start, 1 at its end."""
    known = dimension.known
    if isinstance(value, str):
        return 1 - known.index(value) / (len(known) - 1)
    numbers = [each for each in known if not isinstance(each, str)]
    return (value - min(numbers)) / (max(numbers) - min(numbers))


def _axis(where: Arrangement, place: int, dimension: Dimension) -> ParallelAxis:
    marked = dimension.known
    if not isinstance(marked[0], str):
        numbers = sorted(value for value in marked if not isinstance(value, str))
        low, high = numbers[0], numbers[-1]
        marked = [high, low, *(numbers[1:-1] if len(numbers) <= TICKS_MAX else [numbers[len(numbers) // 2]])]
    taken: list[Span] = []
    ticks = []
    for value in marked:
        text = dimension.write_on_axis(value)
        short = text if len(text) <= where.text_length else f"{text[: where.text_length - 1]}…"
        label, (start, end) = where.tick(place, _fraction(dimension, value), short)
        if all(end <= other_start or start >= other_end for other_start, other_end in taken):
            taken.append((start, end))
            ticks.append(label)
    (start_at, end_at) = (_at(where.point(place, fraction)) for fraction in (0, 1))
    return ParallelAxis(start_at, end_at, where.title(place, dimension.title), tuple(ticks))


def _line(where: Arrangement, run: ParallelRun, index: int, shown: Sequence[Dimension]) -> ParallelLine:
    points = [
        None if (value := dimension.values[index]) is None else _at(where.point(place, _fraction(dimension, value)))
        for place, dimension in enumerate(shown)
    ]
    told = (f"{one.title} {one.write_at(index)}" for one in shown if one.values[index] is not None)
    return ParallelLine(
        run=run,
        css_class=run.style.classes(is_predicted=run.is_predicted),
        strokes=tuple(
            f"{','.join(one)} {','.join(other)}"
            for one, other in pairwise(points)
            if one is not None and other is not None
        ),
        dots=tuple(point for point in points if point is not None),
        text=f"{run.name}: {', '.join(told)}",
    )


def _table(runs: Sequence[ParallelRun], shown: Sequence[Dimension]) -> Table:
    rows = [(run.name, *(one.write_at(index) for one in shown)) for index, run in enumerate(runs)]
    numbers = {place for place, one in enumerate(shown, start=1) if not isinstance(one.known[0], str)}
    return Table(("Run", *(one.title for one in shown)), tuple(rows), frozenset(numbers))


def _at(point: Point) -> tuple[str, str]:
    return _px(point[0]), _px(point[1])


def _px(value: float) -> str:
    return f"{value:.1f}"
