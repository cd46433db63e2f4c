"""Which points nothing else beats: less memory and more speed at once."""

from __future__ import annotations

from collections.abc import Iterable

Point = tuple[float, float]


def pareto_front(points: Iterable[Point]) -> tuple[Point, ...]:
    """Return the pairs of memory and speed that no other pair beats in both, by rising memory.

    (1, 5) (2, 9) (3, 8) -> (1, 5) (2, 9): the third is slower than the second and takes more.
    """
    front: list[Point] = []
    for memory, speed in sorted(set(points), key=lambda point: (point[0], -point[1])):
        if not front or speed > front[-1][1]:
            front.append((memory, speed))
    return tuple(front)
