"""PURE: from the probes and the comparison of speeds to the answer of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..describe.speed import stated_reason
from ..facts import savings, stats
from ..facts.intervals import ENOUGH_ROUNDS
from ..facts.not_compared import NotCompared
from ..facts.result import (
    Boundary,
    DeviceFacts,
    Point,
    Probe,
    Reason,
    RecommendedBy,
    RunResult,
    Speed,
    Timings,
)
from ..facts.speed_rounds import SpeedClaim
from ..race.speed.comparison import Comparison
from ..race.speed.rounds import RUN_TO_RUN
from ..search.allowed_sizes import AllowedSizes
from ..search.reserve import largest_with_reserve, reserve_of
from ..settings.spec import SearchSpec


def measured_points(probes: Sequence[Probe], device: DeviceFacts, largest: int) -> dict[int, Point]:
    """Every size that trained, with its memory and no speed yet."""
    decisive = stats.decisive_probes(probes)
    return {size: Point.of(p, device) for size, p in decisive.items() if p.fits and size <= largest}


def answer(
    spec: SearchSpec,
    device: DeviceFacts,
    boundary: Boundary,
    probes: Sequence[Probe],
    comparison: Comparison,
    *,
    environment: dict[str, Any],
    timings: Timings,
) -> RunResult:
    """Return the result of a run: its points are sizes that trained, and only compared speeds recommend a size."""
    largest = boundary.largest_batch_size or 0
    if comparison.recommended and not is_today_known(spec.current_batch_size, probes):
        why = NotCompared.TODAY_NOT_MEASURED
        comparison = replace(comparison, claim=SpeedClaim.NOTHING, why=why, compared=None)
        comparison = replace(comparison, recommended=None, fastest=None, speedup=None, speeds={}, rough={})
    decisive = stats.decisive_probes(probes)
    points = {}
    for size in measured_points(probes, device, largest):
        probe, speed = decisive[size], comparison.speeds.get(size)
        if not comparison.is_measurable or not comparison.is_compared(size):
            probe = replace(probe, samples_per_second=None, step_seconds=None)
        points[size] = Point.of(probe, device, speed)
    limit_bytes = device.limit_bytes or device.capacity_bytes
    is_searched = spec.check_batch_size is None and boundary.reason is not Reason.TIME_BUDGET
    rule = AllowedSizes.parse(boundary.allowed_sizes) if boundary.allowed_sizes else None
    reserve = reserve_of(spec, limit_bytes, probes, largest)
    with_reserve = largest_with_reserve(points, limit_bytes, reserve, rule) if is_searched else None
    current, recommended = points.get(spec.current_batch_size), points.get(comparison.recommended or 0)
    speedup = comparison.speedup
    is_bound = comparison.claim is SpeedClaim.AT_LEAST
    result = RunResult(
        spec=spec,
        device=device,
        boundary=boundary,
        largest=points.get(largest),
        fastest=points.get(comparison.fastest or 0),
        recommended=recommended,
        current=current,
        waste=savings.waste(limit_bytes, current, recommended),
        speed=_speed(comparison, reserve, spec.current_batch_size),
        speedup=speedup.value if speedup and not is_bound else None,
        speedup_low=speedup.low if speedup else None,
        speedup_high=speedup.high if speedup else None,
        batch_size_ratio=None if recommended is None else recommended.batch_size / spec.current_batch_size,
        savings=savings.savings(spec, speedup, is_bound=is_bound),
        probes=tuple(probes),
        environment=environment,
        timings=timings,
        speed_rounds=comparison.speed_rounds,
        largest_with_reserve=points.get(with_reserve or 0),
    )
    return replace(result, speed=result.speed and replace(result.speed, reason=stated_reason(result)))


def is_today_known(today: int, probes: Sequence[Probe]) -> bool:
    """Whether today's size trained, or it or a smaller one was refused: else no size is known to be better."""
    return any(p.batch_size == today if p.fits else p.batch_size <= today for p in probes)


def _speed(comparison: Comparison, reserve_fraction: float, today: int) -> Speed:
    return Speed(
        is_measurable=comparison.is_measurable,
        reason=comparison.why and comparison.why.describe(today),
        recommended_by=RecommendedBy.SPEED if comparison.recommended else RecommendedBy.NOTHING,
        reserve_fraction=reserve_fraction,
        method=_method(comparison) if comparison.method or comparison.rounds else None,
        rounds=comparison.rounds,
        quiet_rounds=comparison.quiet_rounds,
        seconds=comparison.seconds,
        others_cores=_others_cores(comparison),
        cores=comparison.cores,
        left_out_batch_sizes=comparison.left_out,
        claim=comparison.claim,
        compared=comparison.compared,
        why=comparison.why,
    )


def _method(comparison: Comparison) -> str:
    method = comparison.method or METHOD
    is_order = comparison.claim in (SpeedClaim.AHEAD, SpeedClaim.NO_GAIN) and comparison.quiet_rounds < ENOUGH_ROUNDS
    blocks = (block for each in comparison.speed_rounds for block in each.blocks)
    return f"{method}; {BESIDE_OTHERS}" if is_order and any(block.computing_fraction for block in blocks) else method


def _others_cores(comparison: Comparison) -> float | None:
    """Return the cores that other work used, at most all: the machine's clock counts in ticks, and may give more."""
    if comparison.others_cores is None or comparison.cores is None:
        return comparison.others_cores
    return min(comparison.others_cores, float(comparison.cores))


METHOD = (
    "rounds of blocks in random order in one process; signed-rank intervals of the rounds' ratios, from rounds other "
    f"than those that chose the sizes, widened by the difference between runs ({RUN_TO_RUN:.1%})"
)
BESIDE_OTHERS = "beside other programs, by the clock and the time for which each training had a core"
