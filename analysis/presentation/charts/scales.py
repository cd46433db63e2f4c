"""From batch sizes and figures to pixels, and where the ticks of an axis stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """A straight line from [low, high] of the data to [start, end] in pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Log2Scale:
    """The same in powers of two: each doubling of the batch size takes the same width."""

    line: Scale

    def __call__(self, value: float) -> float:
        return self.line(math.log2(value))


def log2_scale(sizes: Sequence[int], start: float, end: float) -> Log2Scale:
    """Over all sizes; a single size stands in the middle."""
    low, high = math.log2(min(sizes)), math.log2(max(sizes))
    if low == high:
        low, high = low - 1, high + 1
    return Log2Scale(Scale(low, high, start, end))


def power_of_two_ticks(sizes: Sequence[int], at_most: int) -> list[int]:
    """Powers of two between the smallest and the largest size, every second or third one where they would crowd."""
    low, high = math.ceil(math.log2(min(sizes))), math.floor(math.log2(max(sizes)))
    stride = max(1, math.ceil((high - low + 1) / at_most))
    return [2**power for power in range(low, high + 1, stride)]


def binary_ticks(highest: float, at_most: int = 6) -> list[int]:
    """Ticks for bytes: a power of two apart, so that they read 8 GiB, 16 GiB, 24 GiB."""
    step = 1
    while highest / step > at_most:
        step *= 2
    return list(range(0, int(highest) + 1, step))


def decimal_ticks(highest: float, at_most: int = 6) -> list[float]:
    """Ticks for a rate: 1, 2 or 5 times a power of ten apart."""
    power = 10.0 ** math.floor(math.log10(highest / at_most))
    step = next(power * m for m in (1, 2, 5, 10) if highest / (power * m) <= at_most)
    return [index * step for index in range(int(highest / step) + 1)]
