"""An axis of a chart of several runs: its range, straight or logarithmic, and its ticks."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from analysis.presentation.charts.scales import binary_ticks, decimal_ticks, power_of_two_ticks
from analysis.presentation.formatting import number, round_bytes

HOUR, DAY = 3_600, 86_400
_TIME_STEPS_SECONDS = (HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, *(DAY * days for days in (1, 2, 7, 14, 30, 61, 122, 365)))
_HEADROOM = 1.06

Ticks = list[tuple[float, str]]


@dataclass(frozen=True, slots=True)
class Axis:
    """From `low` to `high`. `quantity` is batch, bytes, rate, change or time (seconds since 1970)."""

    quantity: str
    title: str
    low: float
    high: float
    is_log: bool = False

    def fraction(self, value: float) -> float:
        """Where a value stands between the two ends, as 0 to 1."""
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, at_most: int) -> Ticks:
        """Round values within the range, as few as asked for, with their text."""
        values, text = _TICKS[self.quantity](self, at_most), _TEXTS[self.quantity]
        return [(value, text(self, value)) for value in values if self.low <= value <= self.high]


def batch_axis(sizes: Iterable[int], *, is_log: bool) -> Axis:
    """Batch sizes; the straight axis begins at 0."""
    low, high = _range(sizes)
    if not is_log:
        return Axis("batch", "batch size", 0, high * _HEADROOM)
    return Axis("batch", "batch size (log scale)", low / 1.25, high * 1.25, is_log=True)


def bytes_axis(values: Iterable[float], *, is_log: bool, title: str = "peak memory") -> Axis:
    """Bytes, in powers of two."""
    low, high = _range(values)
    if not is_log:
        return Axis("bytes", title, 0, high * _HEADROOM)
    return Axis("bytes", f"{title} (log scale)", low / 1.3, high * 1.3, is_log=True)


def rate_axis(values: Iterable[float], *, is_log: bool) -> Axis:
    """Samples per second."""
    low, high = _range(values)
    if not is_log:
        return Axis("rate", "samples per second", 0, high * _HEADROOM)
    return Axis("rate", "samples per second (log scale)", low / 1.3, high * 1.3, is_log=True)


def change_axis(fractions: Iterable[float], *, title: str) -> Axis:
    """Changes against a first figure, 0.06 is +6 %; never so close that noise looks like a change."""
    low, high = _range([-0.04, 0.04, *fractions])
    air = (high - low) * 0.15
    return Axis("change", title, low - air, high + air)


def time_axis(moments: Iterable[float]) -> Axis:
    """Moments as seconds since 1970, with some air at both ends."""
    low, high = _range(moments)
    air = max((high - low) * 0.04, HOUR)
    return Axis("time", "finished (UTC)", low - air, high + air)


def _range(values: Iterable[float]) -> tuple[float, float]:
    """Smallest and largest; a chart without a positive value still needs an axis."""
    known = list(values) or [1.0]
    return min(known), max(*known, 1e-9) if len(known) > 1 else max(known[0], 1e-9)


def _batch_ticks(axis: Axis, at_most: int) -> list[float]:
    if axis.is_log:
        return list(_thinned_powers(axis, at_most))
    return [tick for tick in decimal_ticks(axis.high, at_most) if float(tick).is_integer()]


def _bytes_ticks(axis: Axis, at_most: int) -> list[float]:
    return list(_thinned_powers(axis, at_most)) if axis.is_log else list(binary_ticks(axis.high, at_most))


def _rate_ticks(axis: Axis, at_most: int) -> list[float]:
    if not axis.is_log:
        return decimal_ticks(axis.high, at_most)
    powers = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
    every = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    inside = [value for value in every if axis.low <= value <= axis.high]
    return inside if len(inside) <= at_most else [10.0**power for power in powers]


def _change_ticks(axis: Axis, at_most: int) -> list[float]:
    step = decimal_ticks(axis.high - axis.low, at_most)[1]
    return [step * index for index in range(math.ceil(axis.low / step), math.floor(axis.high / step) + 1)]


def _time_ticks(axis: Axis, at_most: int) -> list[float]:
    span = axis.high - axis.low
    step = next((step for step in _TIME_STEPS_SECONDS if span / step <= at_most), math.ceil(span / at_most))
    return [step * index for index in range(math.ceil(axis.low / step), math.floor(axis.high / step) + 1)]


def _thinned_powers(axis: Axis, at_most: int) -> list[int]:
    whole = [max(1, math.ceil(axis.low)), max(1, math.floor(axis.high))]
    return power_of_two_ticks(whole, at_most)


def _time_text(axis: Axis, value: float) -> str:
    moment, span = dt.datetime.fromtimestamp(value, dt.UTC), axis.high - axis.low
    if span < 3 * DAY:
        return f"{moment:%d %b %H:%M}"
    return f"{moment:%d %b}" if span < 300 * DAY else f"{moment:%b %Y}"


_TICKS: dict[str, Callable[[Axis, int], list[float]]] = {
    "batch": _batch_ticks,
    "bytes": _bytes_ticks,
    "rate": _rate_ticks,
    "change": _change_ticks,
    "time": _time_ticks,
}
_TEXTS: dict[str, Callable[[Axis, float], str]] = {
    "batch": lambda axis, value: f"{value:,.0f}",
    "bytes": lambda axis, value: round_bytes(int(value)),
    "rate": lambda axis, value: number(value),
    "change": lambda axis, value: f"{'+' if value > 0 else ''}{number(value * 100)} %".replace("-", "−"),
    "time": _time_text,
}
