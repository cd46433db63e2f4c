"""Results whose speeds were compared in rounds: with intervals, or not measurable."""

from dataclasses import replace
from typing import Any

from engine.facts.intervals import Interval
from engine.facts.result import Boundary, Reason, RecommendedBy, RunResult, Speed
from engine.facts.savings import savings
from engine.facts.speed_rounds import ComparedSizes, SpeedBlock, SpeedClaim, SpeedRound, Stage
from tests.factories import make_result

SPEED = Speed(
    True,
    None,
    RecommendedBy.SPEED,
    0.05,
    method="rounds",
    rounds=12,
    quiet_rounds=12,
    seconds=24.0,
    others_cores=1.6,
    cores=2,
    claim=SpeedClaim.FIGURE,
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


def make_bound_result(low: float = 2.0, high: float = 3.8, **fields: Any) -> RunResult:
    """The interval is too wide for a figure, and its lower end is a clear gain: only that is claimed."""
    plain = make_result(**fields)
    sizes = ComparedSizes(8, 4, low, high)
    return _without_speeds(
        plain,
        speed=replace(SPEED, is_measurable=False, compared=sizes, claim=SpeedClaim.AT_LEAST),
        speedup=None,
        speedup_low=low,
        speedup_high=high,
        savings=savings(plain.spec, Interval(low, (low * high) ** 0.5, high), is_bound=True),
    )


def make_kept_result(**fields: Any) -> RunResult:
    """The interval is too wide for a figure, and its upper end is no gain: today's size is kept."""
    plain = make_result(**fields)
    none = Interval(1.0, 1.0, 1.0)
    return _without_speeds(
        plain,
        speed=replace(SPEED, is_measurable=False, compared=ComparedSizes(8, 4, 0.8, 1.02), claim=SpeedClaim.NO_GAIN),
        recommended=plain.current,
        speedup=1.0,
        speedup_low=1.0,
        speedup_high=1.0,
        batch_size_ratio=1.0,
        savings=savings(plain.spec, none),
        largest_with_reserve=plain.recommended,
    )


def make_unmeasurable_result(**fields: Any) -> RunResult:
    """The machine was too busy: no speed, no fastest size, no money, and no recommended size."""
    plain = make_result(**fields)
    nothing = {"quiet_rounds": 3, "claim": SpeedClaim.NOTHING, "recommended_by": RecommendedBy.NOTHING}
    return _without_speeds(
        plain,
        speed=replace(SPEED, is_measurable=False, compared=ComparedSizes(8, 4, 0.8, 13.0), **nothing),
        recommended=None,
        speedup=None,
        batch_size_ratio=None,
        waste=replace(plain.waste, at_recommended_bytes=None, at_recommended_fraction=None),
        savings=savings(plain.spec, None),
        largest_with_reserve=plain.recommended,
    )


def make_ahead_result(**fields: Any) -> RunResult:
    """Other programs ran in every round, and the larger size was ahead in each: only the order is known."""
    plain = make_result(**fields)
    said = {"quiet_rounds": 0, "rounds": 10, "others_cores": 1.3, "claim": SpeedClaim.AHEAD}
    blocks = [SpeedBlock(4, 0.4, 0, 1, 1.3), SpeedBlock(8, 0.1, 0, 1, 1.3)]
    return _without_speeds(
        plain,
        speed=replace(SPEED, is_measurable=False, reason="faster than your 4 in 10 of 10 rounds", **said),
        speedup=None,
        savings=savings(plain.spec, None),
        largest_with_reserve=plain.recommended,
        speed_rounds=(SpeedRound(Stage.EVALUATION, 2.0, tuple(blocks)),) * 10,
    )


def undisturbed(result: RunResult) -> RunResult:
    assert result.speed is not None
    return replace(result, speed=replace(result.speed, others_cores=0.0, quiet_rounds=result.speed.rounds))


def make_result_out_of_time(**fields: Any) -> RunResult:
    """The time ended before the limit was known, so nothing was compared."""
    plain = make_unmeasurable_result(**fields)
    assert plain.speed is not None
    return replace(
        plain,
        boundary=Boundary(8, certified=False, refused_batch_size=None, reason=Reason.TIME_BUDGET),
        speed=replace(
            plain.speed, reason="the run ended before the speeds were compared", compared=None, rounds=0, seconds=0.0
        ),
        largest_with_reserve=None,
    )


def _without_speeds(result: RunResult, **fields: Any) -> RunResult:
    """No speed of a single size is stated without a figure."""
    changed = replace(result, fastest=None, **fields)
    points = {name: getattr(changed, name) for name in ("recommended", "current", "largest", "largest_with_reserve")}
    without = {
        name: replace(point, samples_per_second=None, step_seconds=None) for name, point in points.items() if point
    }
    return replace(changed, **without)
