"""Placement of texts: inside the picture, and without covering a line, a point or another text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, product
from typing import TypeVar

ASCENT, DESCENT = 11.0, 3.0
"""Pixels that a text of 12 px takes above and below its baseline."""
HUG = 8.0
"""Pixels that a label above or below its point reaches past it, where the picture ends."""
RING = 7.0
LEADER_FROM = 12.0
"""Pixels between a point and its label from which on a line has to join them."""

# The widest fonts that pages fall back to (DejaVu Sans) decide, so that a box is never narrower than its text.
_NARROW, _WIDE = frozenset(" .,:;'|!()ijlftrI"), frozenset("mwMW%–→✕±")
_NARROW_WIDTH, _WIDTH, _WIDE_WIDTH, _BOLD = 5.0, 7.7, 11.5, 1.12

T = TypeVar("T")
Position = tuple[float, float]
Segment = tuple[Position, Position]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Whether they share an area; a shared edge does not count."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def holds(self, other: Box) -> bool:
        return (
            self.left <= other.left
            and self.right >= other.right
            and self.top <= other.top
            and self.bottom >= other.bottom
        )

    def is_crossed_by(self, segment: Segment) -> bool:
        """Whether a straight line between two places crosses it (Liang and Barsky's clipping)."""
        (x0, y0), (x1, y1) = segment
        # most lines are far away, and a page compares tens of thousands of pairs
        if (
            max(x0, x1) <= self.left
            or min(x0, x1) >= self.right
            or max(y0, y1) <= self.top
            or min(y0, y1) >= self.bottom
        ):
            return False
        enters, leaves = 0.0, 1.0
        for start, way, low, high in ((x0, x1 - x0, self.left, self.right), (y0, y1 - y0, self.top, self.bottom)):
            if way:
                near, far = sorted(((low - start) / way, (high - start) / way))
                enters, leaves = max(enters, near), min(leaves, far)
        return enters < leaves

    def nearest(self, point: Position) -> Position:
        return min(max(point[0], self.left), self.right), min(max(point[1], self.top), self.bottom)


@dataclass(frozen=True, slots=True)
class Label:
    """A text with its baseline's position, its anchor ("start", "middle", "end") and the box it takes."""

    text: str
    x: float
    y: float
    anchor: str
    box: Box
    leader: Segment | None = None
    """From the point to the box, where the label had to move away."""


@dataclass(slots=True)
class Room:
    """A picture while it is filled: what is drawn already, and where a text still finds a place."""

    inside: Box
    texts: list[Box] = field(default_factory=list)
    shapes: list[Box] = field(default_factory=list)
    lines: list[Segment] = field(default_factory=list)

    def is_free(self, box: Box) -> bool:
        return (
            self.inside.holds(box)
            and not _meets(box.overlaps, self.texts)
            and not _meets(box.overlaps, self.shapes)
            and not _meets(box.is_crossed_by, self.lines)
        )

    def place_beside(self, text: str, point: Position, *, is_bold: bool = False) -> Label | None:
        """Put a text near its point, else where there is room, with a leader. None where the picture is full."""
        labels = chain(_near(text, point, is_bold), _anywhere(text, point, is_bold, self.inside))
        return next((placed for label in labels if (placed := self._take(label, point)) is not None), None)

    def place_first(self, labels: Iterable[Label]) -> Label | None:
        return next((placed for label in labels if (placed := self._take(label, None)) is not None), None)

    def _take(self, label: Label, point: Position | None) -> Label | None:
        if not self.is_free(label.box):
            return None
        leader = None if point is None else _leader(label.box, point)
        if leader is not None:
            if any(text.is_crossed_by(leader) for text in self.texts):
                return None
            self.lines.append(leader)
        self.texts.append(label.box)
        return Label(label.text, label.x, label.y, label.anchor, label.box, leader)


def _meets(touches: Callable[[T], bool], obstacles: list[T]) -> bool:
    """Whether one of these is touched. It moves to the front: it mostly blocks the next place that is tried, too."""
    for number, other in enumerate(obstacles):
        if touches(other):
            obstacles.insert(0, obstacles.pop(number))
            return True
    return False


def text_width(text: str, *, is_bold: bool = False) -> float:
    """Pixels that a text of 12 px takes at most."""
    widths = (_NARROW_WIDTH if letter in _NARROW else _WIDE_WIDTH if letter in _WIDE else _WIDTH for letter in text)
    return sum(widths) * (_BOLD if is_bold else 1.0)


def label_at(text: str, x: float, y: float, anchor: str = "start", *, is_bold: bool = False) -> Label:
    width = text_width(text, is_bold=is_bold)
    left = {"start": x, "middle": x - width / 2, "end": x - width}[anchor]
    return Label(text, x, y, anchor, Box(left, y - ASCENT, left + width, y + DESCENT))


def around(point: Position, radius: float) -> Box:
    """Return the square that a dot, a ring or a cross takes."""
    x, y = point
    return Box(x - radius, y - radius, x + radius, y + radius)


def _near(text: str, point: Position, is_bold: bool) -> Iterator[Label]:
    """Above first, then the sides, then below; then the same further away."""
    x, y = point
    for distance in (10.0, 22.0, 36.0, 52.0):
        for dx, dy, anchor in (
            (0.0, -distance, "middle"),
            (-distance, -distance / 2, "end"),
            (-distance, 4.0, "end"),
            (distance, 4.0, "start"),
            (0.0, distance + 10, "middle"),
            (HUG, distance + 10, "end"),
            (HUG, -distance, "end"),
            (-HUG, -distance, "start"),
            (-distance, distance + 4, "end"),
            (distance, distance + 4, "start"),
        ):
            yield label_at(text, x + dx, y + dy, anchor, is_bold=is_bold)


def _anywhere(text: str, point: Position, is_bold: bool, inside: Box) -> Iterator[Label]:
    half = text_width(text, is_bold=is_bold) / 2
    columns = range(math.ceil(inside.left + half), math.floor(inside.right - half) + 1, 16)
    rows = range(math.ceil(inside.top + ASCENT), math.floor(inside.bottom - DESCENT) + 1, 14)
    for x, y in sorted(product(columns, rows), key=lambda place: math.dist(place, point)):
        yield label_at(text, x, y, "middle", is_bold=is_bold)


def _leader(box: Box, point: Position) -> Segment | None:
    near = box.nearest(point)
    distance = math.dist(near, point)
    if distance < LEADER_FROM:
        return None
    share = RING / distance
    return (point[0] + (near[0] - point[0]) * share, point[1] + (near[1] - point[1]) * share), near
