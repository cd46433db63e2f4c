"""Where a label goes so that it covers neither the line, nor another label, nor leaves the picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

CHARACTER_WIDTH = 6.7  # pixels, a little more than the average of a 12 px sans-serif, so that boxes err wide
LINE_HEIGHT = 14.0
HUG = 8.0  # how far a label above or below its point reaches past it, where the picture ends
NOTHING_COVERED = 1e-6  # square pixels: areas are floats, and their difference is seldom exactly 0

Position = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """The shared area, 0 where they do not touch."""
        # most boxes are far apart, and a page compares tens of thousands of pairs
        if self.right <= other.left or other.right <= self.left or self.bottom <= other.top or other.bottom <= self.top:
            return 0.0
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return width * height

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.bottom - self.top)


@dataclass(frozen=True, slots=True)
class Label:
    """A text with its baseline's position, its anchor ("start", "middle", "end") and the box it takes."""

    text: str
    x: float
    y: float
    anchor: str
    box: Box


def place(wanted: Iterable[tuple[str, Position]], obstacles: Sequence[Box], inside: Box) -> list[Label]:
    """Put each text near its point, the first ones first, where it overlaps least."""
    taken, labels = list(obstacles), []
    for text, point in wanted:
        best = _best(_candidates(text, point), taken, inside)
        taken.append(best.box)
        labels.append(best)
    return labels


def _best(candidates: Iterable[Label], taken: Sequence[Box], inside: Box) -> Label:
    """The cheapest; where one covers nothing at all, the rest need not be looked at."""
    costs = []
    for label in candidates:
        cost = _cost(label.box, taken, inside)
        if cost < NOTHING_COVERED:
            return label
        costs.append((cost, label))
    return min(costs, key=lambda pair: pair[0])[1]


def along(points: Sequence[Position], radius: float = 5.0, every: float = 8.0) -> list[Box]:
    """Small boxes over the dots and the line between them, as obstacles."""
    boxes = [around(point, radius) for point in points]
    for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
        steps = int(max(abs(x1 - x0), abs(y1 - y0)) // every) + 1
        boxes += [around((x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps), 2.0) for i in range(1, steps)]
    return boxes


def text_box(text: str, x: float, y: float, anchor: str) -> Box:
    """The rectangle a text takes when its baseline is at y."""
    width = len(text) * CHARACTER_WIDTH
    left = {"start": x, "middle": x - width / 2, "end": x - width}[anchor]
    return Box(left, y - LINE_HEIGHT + 3, left + width, y + 3)


def around(point: Position, radius: float) -> Box:
    """The square that a dot, a ring or a cross takes."""
    x, y = point
    return Box(x - radius, y - radius, x + radius, y + radius)


def _candidates(text: str, point: Position) -> Iterator[Label]:
    """Above first, then the sides, then below; then the same further away."""
    x, y = point
    for distance in (10.0, 22.0, 36.0, 52.0):
        for dx, dy, anchor in (
            (0, -distance, "middle"),
            (-distance, -distance / 2, "end"),
            (-distance, 4, "end"),
            (distance, 4, "start"),
            (0, distance + 10, "middle"),
            (HUG, distance + 10, "end"),
            (HUG, -distance, "end"),
            (-distance, distance + 4, "end"),
            (distance, distance + 4, "start"),
        ):
            yield Label(text, x + dx, y + dy, anchor, text_box(text, x + dx, y + dy, anchor))


def _cost(box: Box, taken: Sequence[Box], inside: Box) -> float:
    # leaving the picture cuts letters off, so it weighs more than covering the line
    outside = box.area - box.overlap(inside)
    return outside * 10 + sum(box.overlap(other) for other in taken)
