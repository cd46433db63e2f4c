"""An axis of a chart: its range, linear or logarithmic, and its ticks. Each end is a tick, so both ends are named."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from analysis.formatting import number, round_bytes

HOUR, DAY = 3_600, 86_400
_TIME_STEPS_SECONDS = (HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, *(DAY * days for days in (1, 2, 7, 14, 30, 61, 122, 365)))
_TICKS_MAX = 7

Ticks = tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """From `low` to `high`; `ticks` are values between them with texts, and a unit where the title has none."""

    title: str
    low: float
    high: float
    ticks: Ticks
    is_log: bool = False

    def fraction(self, value: float) -> float:
        """Return where a value stands between the two ends, as 0 to 1."""
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def batch_axis(sizes: Iterable[int], *, is_log: bool) -> Axis:
    """Make the axis of batch sizes; a straight one begins at 0."""
    known = list(sizes)
    if is_log:
        return _powers_of_two("batch size in samples (log scale)", known, lambda size: f"{size:,.0f}", 99)
    ticks = [tick for tick in decimal_ticks(max(known)) if float(tick).is_integer()]
    return _between("batch size in samples", ticks, lambda size: f"{size:,.0f}")


def step_axis(last: int) -> Axis:
    return _between("step", decimal_ticks(last), lambda step: f"{step:,.0f}")


def bytes_axis(values: Iterable[float], *, is_log: bool, title: str = "peak memory") -> Axis:
    known = list(values)
    if is_log:
        return _powers_of_two(f"{title} (log scale)", known, round_bytes, _TICKS_MAX)
    return _between(title, binary_ticks(max(known)), round_bytes)


def rate_axis(values: Iterable[float], *, is_log: bool) -> Axis:
    title, known = "samples per second", [value for value in values if value > 0] or [1.0]
    if not is_log:
        return _between(title, decimal_ticks(max(known)), number)
    powers = range(math.floor(math.log10(min(known))), math.ceil(math.log10(max(known))) + 1)
    fine = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    # within the range of the known, and the first step beyond either end
    below = max((value for value in fine if value <= min(known)), default=fine[0])
    above = min((value for value in fine if value >= max(known) and value > below), default=fine[-1])
    inside = [value for value in fine if below <= value <= above]
    ticks = inside if len(inside) <= _TICKS_MAX else [10.0**power for power in powers]
    return _between(f"{title} (log scale)", ticks, number, is_log=True)


def factor_axis(factors: Iterable[float], *, title: str) -> Axis:
    return _between(title, decimal_ticks(max(factors)), lambda factor: f"{number(factor)}x")


def change_axis(fractions: Iterable[float], *, title: str) -> Axis:
    """Make the axis of changes from a first figure, 0.06 is +6 %; never so close that noise looks like a change."""
    known = [-0.04, 0.04, *fractions]
    step = decimal_ticks(max(known) - min(known))[1]
    first, last = math.floor(min(known) / step), math.ceil(max(known) / step)
    return _between(title, [step * index for index in range(first, last + 1)], _change_text)


def time_axis(moments: Iterable[float]) -> Axis:
    """Make the axis of moments, seconds since 1970; its ticks are round, and leave some air at both ends."""
    known = list(moments)
    air = max((max(known) - min(known)) * 0.04, HOUR)
    low, high = min(known) - air, max(known) + air
    step = next((step for step in _TIME_STEPS_SECONDS if (high - low) / step <= _TICKS_MAX), (high - low) / _TICKS_MAX)
    values = [step * index for index in range(math.ceil(low / step), math.floor(high / step) + 1)]
    form = "%d %b %H:%M" if high - low < 3 * DAY else "%d %b" if high - low < 300 * DAY else "%b %Y"
    ticks = tuple((value, dt.datetime.fromtimestamp(value, dt.UTC).strftime(form)) for value in values)
    return Axis("finished (UTC)", low, high, ticks)


def binary_ticks(highest: float, at_most: int = 6) -> list[float]:
    """Return ticks from 0 to the first that is not below the highest, a power of two apart: 8 GiB, 16 GiB, 24 GiB."""
    step = 1
    while highest / step > at_most:
        step *= 2
    return [index * step for index in range(max(1, math.ceil(highest / step)) + 1)]


def decimal_ticks(highest: float, at_most: int = 6) -> list[float]:
    """Return ticks from 0 to the first that is not below the highest, 1, 2 or 5 times a power of ten apart."""
    if highest <= 0:
        return [0, 1]
    power = 10.0 ** math.floor(math.log10(highest / at_most))
    step = next(power * m for m in (1, 2, 5, 10) if highest / (power * m) <= at_most)
    return [round(index * step, 12) for index in range(math.ceil(round(highest / step, 9)) + 1)]


def _between(title: str, values: list[float], text: Callable[[float], str], *, is_log: bool = False) -> Axis:
    return Axis(title, values[0], values[-1], tuple((value, text(value)) for value in values), is_log)


def _powers_of_two(title: str, values: Iterable[float], text: Callable[[float], str], at_most: int) -> Axis:
    """Span from the power at or below the smallest to that at or above the largest; a single value is centred."""
    known = list(values)
    low, high = math.floor(math.log2(min(known))), math.ceil(math.log2(max(known)))
    if low == high:
        low, high = low - 1, high + 1
    stride = math.ceil((high - low + 1) / at_most)
    powers = [2.0**power for power in range(high, low - 1, -stride)][::-1]
    ticks = tuple((value, text(value)) for value in powers if value >= 1)
    return Axis(title, 2.0**low, 2.0**high, ticks, is_log=True)


def _change_text(fraction: float) -> str:
    return f"{'+' if fraction > 0 else ''}{number(round(fraction * 100, 9))} %".replace("-", "−")
