"""The texts of a picture: how wide they are, and where each stands: the first place inside that covers nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, product

LETTER = 16.0
"""Size of the letters on a phone, in units of the picture: on wider screens they are smaller and have more air."""
ASCENT, DESCENT, AIR = 0.9 * LETTER, 0.25 * LETTER, 3.0
STRIDE = 8.0
"""Units between the points of a line that texts keep off: less than a text is high."""
LEADER_FROM, RING_RADIUS = 14.0, 7.0
"""Units between a point and its text from which on a line joins them; and where it begins, at the point's ring."""
_BOLD, _BOLD_FACTOR = frozenset({"label-use", "text-step"}), 1.12

# of DejaVu Sans, the widest font that pages fall back to, in hundredths of the size of the font
_WIDTHS = {
    29: "'ijlIJ",
    32: " ,.·",
    36: "f/:;\\|-",
    41: "()[]t!r",
    53: '"*_`sz?',
    59: "cLFkvxy",
    62: "PTYaoe",
    64: "ESbdghnpqu$0123456789{}",
    70: "KAVBRXZC",
    78: "UHNDG&",
    82: "OQw",
    86: "#+<=>^~M",
    100: "%mW@",
}
_WIDTH_OF = {letter: width for width, letters in _WIDTHS.items() for letter in letters}
_WIDEST = max(_WIDTHS)
"""Width of a letter that is not in the table: generous, so that no text is cut."""

Position = tuple[float, float]


def text_width(text: str, letter: float) -> float:
    """Return the width of a text whose letters have this size, in the unit of the size."""
    return sum(_WIDTH_OF.get(each, _WIDEST) for each in text) * letter / 100


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, y downwards; one without an area is a point."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Whether the two boxes share more than an edge."""
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


@dataclass(frozen=True, slots=True)
class Label:
    """A text with its baseline's position, its anchor ("start", "middle", "end"), its class, and the point it names."""

    text: str
    x: float
    y: float
    css_class: str
    anchor: str = "start"
    point: Position | None = None

    @property
    def box(self) -> Box:
        width = text_width(self.text, LETTER) * (_BOLD_FACTOR if self.css_class in _BOLD else 1)
        left = self.x - {"start": 0, "middle": width / 2, "end": width}[self.anchor]
        return Box(left - AIR, self.y - ASCENT, left + width + AIR, self.y + DESCENT)

    @property
    def leader(self) -> tuple[Position, Position] | None:
        """Return the line from a label that had to move away to its point."""
        if self.point is None:
            return None
        (x, y), box = self.point, self.box
        near = min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)
        distance = math.dist(near, self.point)
        if distance < LEADER_FROM:
            return None
        share = RING_RADIUS / distance
        return (x + (near[0] - x) * share, y + (near[1] - y) * share), near


@dataclass(slots=True)
class Room:
    shapes: list[Box] = field(default_factory=list)
    texts: list[Box] = field(default_factory=list)

    def place(self, places: Iterable[Label], inside: Box) -> Label | None:
        """Take the first place inside that covers nothing and whose leader crosses no text; None: it is left out."""
        for label in places:
            box, leader = label.box, list(map(_point, _along(*label.leader))) if label.leader else []
            is_free = inside.holds(box) and not any(map(box.overlaps, chain(self.texts, self.shapes)))
            if is_free and not any(text.overlaps(point) for text in self.texts for point in leader):
                self.texts.append(box)
                self.shapes += leader
                return label
        return None

    def take_around(self, point: Position, radius: float) -> None:
        self.shapes.append(_point(point, radius))

    def take_line(self, start: Position, end: Position) -> None:
        self.shapes += map(_point, _along(start, end))


def _point(at: Position, radius: float = 0.0) -> Box:
    x, y = at
    return Box(x - radius, y - radius, x + radius, y + radius)


def _along(start: Position, end: Position) -> Iterator[Position]:
    (x0, y0), (x1, y1) = start, end
    steps = max(1, math.ceil(math.dist(start, end) / STRIDE))
    for step in range(steps + 1):
        yield x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps


def beside(text: str, point: Position, css_class: str, inside: Box) -> Iterator[Label]:
    """Yield places above a point, at its sides and below it; then any inside, the nearest first."""
    x, y = point
    for distance in (12.0, 26.0, 42.0):
        for dx, dy, anchor in (
            (0.0, -distance, "middle"),
            (-distance, -distance / 2, "end"),
            (-distance, 5.0, "end"),
            (distance, 5.0, "start"),
            (0.0, distance + 12, "middle"),
            (8.0, distance + 12, "end"),
            (8.0, -distance, "end"),
            (-8.0, -distance, "start"),
        ):
            yield Label(text, x + dx, y + dy, css_class, anchor, point)
    grid = product(range(int(inside.left), int(inside.right), 16), range(int(inside.top), int(inside.bottom), 12))
    for place in sorted(grid, key=lambda place: math.dist(place, point)):
        yield Label(text, *place, css_class, "middle", point)
