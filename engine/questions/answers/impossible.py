"""A figure that no machine can have measured, and the error of a document that holds some."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

ROUNDING = 1e-9
"""Relative tolerance of figures: another order of summation, or another mathematical library, changes them by less."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """A field of a document, what it says, and the value or bound that the rest of the document allows."""

    field: str
    claimed: Any
    allowed: Any


class ImpossibleFiguresError(Exception):
    """The document holds figures that no machine can have measured: see `found`."""

    def __init__(self, found: list[Impossible]) -> None:
        super().__init__(", ".join(each.field for each in found[:3]))
        self.found = found


def within(field: str, value: float | None, low: float, high: float) -> Iterator[Impossible]:
    """Yield a figure that is known and out of its bounds."""
    if value is not None and not low <= value <= high:
        yield Impossible(field, value, [low, high])


def refuse(found: Iterable[Impossible]) -> None:
    """Raise ImpossibleFiguresError where there is any."""
    if impossible := list(found):
        raise ImpossibleFiguresError(impossible)


def is_same(one: Any, other: Any) -> bool:
    """Whether both are the same except for rounding."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=1e-12)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_same(one[name], other[name]) for name in one)
    return bool(one == other)
