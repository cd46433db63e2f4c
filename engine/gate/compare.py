"""PURE: whether a result is worse than a baseline, or than what was demanded.

Batch size and memory are exact figures: worse by more than is allowed is a regression. A speed is one only where
the interval of the ratio does not hold 1, too: two speeds whose intervals meet may be the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..errors import SpecError
from ..facts.intervals import Interval
from ..facts.result import Boundary, Point
from ..facts.stats import is_same_figure
from ..questions.documents.measured import Measured
from ..settings.setting import Role
from ..settings.spec import DEFAULTS, SETTINGS
from ..text.units import format_bytes

FAIL_BELOW, FAIL_ABOVE = 0.05, 0.01
"""Shares for batch size and speed, and for memory: the peak of one seed and version repeats, a speed does not."""
_WORKLOAD = (
    *("command", "function", "batch", "batch_in", "whole_run", "emulate_ranks", "rank"),
    *(name for name, each in SETTINGS.items() if each.role is Role.WORKLOAD),
)
"""What is trained: each spec has only those of its kind, so the others are equal."""


class Verdict(StrEnum):
    """How a figure compares. `unknown`: one of the two was not measured, and nothing is claimed."""

    PASSED = "passed"
    REGRESSED = "regressed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Demands:
    """What a result must keep: the shares by which sizes and speeds may be lower, and memory more.

    None: it is not demanded.
    """

    fail_below: float = FAIL_BELOW
    fail_above: float = FAIL_ABOVE
    max_memory_bytes: int | None = None
    min_batch_size: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    now: str
    baseline: str
    verdict: Verdict
    reason: str


def workload_differences(now: Measured, baseline: Measured) -> list[str]:
    """Name the fields in which two results did not train the same on the same device: these are not compared."""
    differing = [f"spec.{name}" for name in _WORKLOAD if _value(now, name) != _value(baseline, name)]
    of_device = [name for name in ("kind", "name") if getattr(now.device, name) != getattr(baseline.device, name)]
    return [*differing, *(f"device.{name}" for name in of_device)]


def _value(of: Measured, name: str) -> Any:
    return of.spec.get(name, DEFAULTS.get(name))


def compare(now: Measured, baseline: Measured | None, demands: Demands) -> list[Row]:
    """Return a row for each figure. Raises SpecError where the two did not train the same."""
    rows = [*_demanded(now, demands)]
    if baseline is None:
        return rows
    if differing := workload_differences(now, baseline):
        raise SpecError("baseline", f"is of another workload or device: {', '.join(differing)}")
    return [_batch_size(now, baseline, demands), _memory(now, baseline, demands), _speed(now, baseline, demands), *rows]


def _demanded(now: Measured, demands: Demands) -> Iterator[Row]:
    if (least := demands.min_batch_size) is not None:
        largest = now.boundary.largest_batch_size
        found = Verdict.UNKNOWN, "no largest size is known"
        if largest is not None:
            found = _judge_size(now.boundary, is_smaller=largest < least, reason="the largest that trained")
        yield Row("batch size demanded", _size(largest), f"at least {least}", *found)
    if (most := demands.max_memory_bytes) is not None:
        points, recommended = now.points(), now.recommended.batch_size if now.recommended else 0
        # the memory of today's size, or of the recommended one where today's was not measured
        sizes = (now.spec.get("current_batch_size", 0), recommended)
        size = next((each for each in sizes if each in points), None)
        memory_bytes = None if size is None else points[size].memory_bytes
        verdict = Verdict.UNKNOWN if memory_bytes is None else _verdict(memory_bytes > most)
        reason = "no size that trained has a memory figure" if size is None else f"of batch {size}"
        yield Row("memory allowed", _bytes(memory_bytes), f"at most {format_bytes(most)}", verdict, reason)


def _batch_size(now: Measured, baseline: Measured, demands: Demands) -> Row:
    """Compare the limits. The size at which a search ended early is a lower bound, which decides one way alone."""
    sizes = now.boundary.largest_batch_size, baseline.boundary.largest_batch_size
    texts = _limit(now.boundary), _limit(baseline.boundary)
    if sizes[0] is None or sizes[1] is None:
        return Row("largest batch size", *texts, Verdict.UNKNOWN, "not known of both")
    is_smaller, change = sizes[0] < sizes[1] * (1 - demands.fail_below), _change(sizes[0], sizes[1])
    if not baseline.boundary.certified and not (is_smaller and now.boundary.certified):
        return Row(
            "largest batch size", *texts, Verdict.UNKNOWN, "the baseline is a lower bound: its limit is not known"
        )
    if not now.boundary.certified or not baseline.boundary.certified:
        change = "decided by the lower bound"
    return Row("largest batch size", *texts, *_judge_size(now.boundary, is_smaller=is_smaller, reason=change))


def _limit(boundary: Boundary) -> str:
    """Write the largest size; "at least 22" where the search ended before its limit."""
    size = boundary.largest_batch_size
    return _size(size) if boundary.certified or size is None else f"at least {size}"


def _judge_size(boundary: Boundary, *, is_smaller: bool, reason: str) -> tuple[Verdict, str]:
    """Return the verdict and its reason. Only a certified limit shows that a larger size does not train."""
    if is_smaller and not boundary.certified:
        ended = boundary.reason.value.replace("_", " ")
        return Verdict.UNKNOWN, f"the search ended before its limit was known ({ended})"
    return _verdict(is_smaller), reason


def _memory(now: Measured, baseline: Measured, demands: Demands) -> Row:
    points, before = now.points(), baseline.points()
    size = max(points.keys() & before.keys(), default=0)
    held = (points[size].memory_bytes, before[size].memory_bytes) if size else (None, None)
    texts = _bytes(held[0]), _bytes(held[1])
    if held[0] is None or held[1] is None:
        return Row("memory", *texts, Verdict.UNKNOWN, "no size was measured in both")
    is_worse = held[0] > held[1] * (1 + demands.fail_above)
    return Row("memory", *texts, _verdict(is_worse), f"of batch {size}: {_change(held[0], held[1])}")


def _speed(now: Measured, baseline: Measured, demands: Demands) -> Row:
    name = "samples a second, recommended size"
    speeds = speed_of(now.recommended), speed_of(baseline.recommended)
    texts = _describe_speed(speeds[0], now.recommended), _describe_speed(speeds[1], baseline.recommended)
    if speeds[0] is None or speeds[1] is None:
        return Row(name, *texts, Verdict.UNKNOWN, "no interval is known of both, so nothing is claimed")
    ratio = ratio_of(speeds[0], speeds[1])
    between = f"{ratio.value:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]"
    is_lower = ratio.value < 1 - demands.fail_below
    if is_lower and ratio.high >= 1:
        return Row(name, *texts, Verdict.PASSED, f"{between}: lower, but the intervals meet, so nothing is claimed")
    return Row(name, *texts, _verdict(is_lower), between)


def speed_of(point: Point | None) -> Interval | None:
    if point is None or point.samples_per_second_low is None or point.samples_per_second_high is None:
        return None
    low, value, high = point.samples_per_second_low, point.samples_per_second or 0.0, point.samples_per_second_high
    return Interval(low, value, high) if 0 < low <= value <= high else None


def ratio_of(now: Interval, baseline: Interval) -> Interval:
    """Return how many times as fast, with the interval of two measurements that know nothing of each other."""
    value = math.log(now.value / baseline.value)
    below = math.hypot(math.log(now.value / now.low), math.log(baseline.high / baseline.value))
    above = math.hypot(math.log(now.high / now.value), math.log(baseline.value / baseline.low))
    return Interval(value - below, value, value + above).exp()


def _verdict(is_worse: bool) -> Verdict:
    return Verdict.REGRESSED if is_worse else Verdict.PASSED


def _change(now: float, before: float) -> str:
    if is_same_figure(now, before):
        return "the same"
    return f"{now / before - 1:+.1%}" if before else "was 0"


def _size(size: int | None) -> str:
    return "not known" if size is None else str(size)


def _bytes(held: int | None) -> str:
    return "not measured" if held is None else format_bytes(held)


def _describe_speed(speed: Interval | None, point: Point | None) -> str:
    if speed is None or point is None:
        return "not measured"
    return f"{speed.value:.1f} [{speed.low:.1f}, {speed.high:.1f}] of batch {point.batch_size}"
