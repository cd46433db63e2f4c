"""Results whose speeds were compared in rounds: with intervals, or not measurable."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.intervals import Interval
from engine.result import RecommendedBy, RunResult, Speed
from engine.savings import savings
from tests.factories import make_result

SPEED = Speed(
    True,
    None,
    RecommendedBy.SPEED,
    0.05,
    method="rounds",
    rounds=12,
    quiet_rounds=10,
    seconds=24.0,
    others_cores=1.6,
    cores=2,
)


def make_timed_result(low: float = 1.36, value: float = 1.39, high: float = 1.42, **fields: Any) -> RunResult:
    """`make_result` with the interval of its speed-up, and the money at both ends."""
    plain = make_result(**fields)
    assert plain.recommended is not None
    assert plain.current is not None
    return replace(
        plain,
        speed=SPEED,
        speedup=value,
        speedup_low=low,
        speedup_high=high,
        savings=savings(plain.spec, Interval(low, value, high)),
        recommended=replace(plain.recommended, samples_per_second_low=15.0, samples_per_second_high=17.0),
        current=replace(plain.current, samples_per_second_low=7.9, samples_per_second_high=8.2),
    )


def make_unmeasurable_result(**fields: Any) -> RunResult:
    """The machine was too busy: no speed, no fastest size, no money; the size is recommended by its memory."""
    plain = make_result(**fields)
    assert plain.recommended is not None
    assert plain.current is not None
    reason = "speed not measurable here now: 8 is between 0.8x and 13x as fast as 4"
    return replace(
        plain,
        speed=replace(SPEED, is_measurable=False, reason=reason, recommended_by=RecommendedBy.MEMORY_RESERVE),
        fastest=None,
        speedup=None,
        savings=savings(plain.spec, None),
        recommended=replace(plain.recommended, samples_per_second=None, step_seconds=None),
        current=replace(plain.current, samples_per_second=None, step_seconds=None),
    )
