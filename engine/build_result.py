"""PURE: from the probes and the comparison of speeds to the answer of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from . import savings, stats
from .intervals import Interval
from .result import Boundary, DeviceFacts, Point, Probe, RecommendedBy, RunResult, Speed, Timings
from .search.reserve import sizes_with_reserve
from .spec import SearchSpec
from .speed.comparison import Comparison
from .speed.selection import RUN_TO_RUN


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
    """Return the result of a run whose search is over. Only sizes that trained appear as points of the answer.

    By speed where the speeds could be compared; else the largest size that keeps the reserve, and neither a
    fastest size nor a speed-up nor money.
    """
    largest = boundary.largest_batch_size or 0
    decisive = stats.decisive_probes(probes)
    points = {}
    for size in measured_points(probes, device, largest):
        probe, speed = decisive[size], comparison.speeds.get(size)
        if not comparison.is_measurable or not comparison.is_compared(size):
            probe = replace(probe, samples_per_second=None, step_seconds=None)
        points[size] = Point.of(probe, device, speed)
    limit_bytes = device.limit_bytes or device.capacity_bytes
    chosen, by = comparison.recommended, RecommendedBy.SPEED
    if chosen is None:
        chosen, by = None, RecommendedBy.NOTHING
        if points and spec.check_batch_size is None:
            keeping = sizes_with_reserve(points, limit_bytes, spec.reserve_fraction)
            chosen, by = max(keeping), RecommendedBy.MEMORY_RESERVE
    current, recommended = points.get(spec.current_batch_size), points.get(chosen or 0)
    speedup: Interval | None = comparison.speedup
    return RunResult(
        spec=spec,
        device=device,
        boundary=boundary,
        largest=points.get(largest),
        fastest=points.get(comparison.fastest or 0),
        recommended=recommended,
        current=current,
        waste=savings.waste(limit_bytes, current, recommended),
        speed=_speed(comparison, by, spec.reserve_fraction),
        speedup=speedup.value if speedup else None,
        speedup_low=speedup.low if speedup else None,
        speedup_high=speedup.high if speedup else None,
        batch_size_ratio=None if recommended is None else recommended.batch_size / spec.current_batch_size,
        savings=savings.savings(spec, speedup),
        probes=tuple(probes),
        environment=environment,
        timings=timings,
        speed_rounds=comparison.speed_rounds,
    )


def _speed(comparison: Comparison, by: RecommendedBy, reserve_fraction: float) -> Speed:
    return Speed(
        is_measurable=comparison.is_measurable,
        reason=comparison.reason,
        recommended_by=by,
        reserve_fraction=reserve_fraction,
        method=comparison.method or (METHOD if comparison.rounds else None),
        rounds=comparison.rounds,
        quiet_rounds=comparison.quiet_rounds,
        seconds=comparison.seconds,
        others_cores=comparison.others_cores,
        cores=comparison.cores,
        left_out_batch_sizes=comparison.left_out,
    )


METHOD = (
    "rounds of blocks in random order in one process; signed-rank intervals of the rounds' ratios, from rounds other "
    f"than those that chose the sizes, widened by the difference between runs ({RUN_TO_RUN:.1%})"
)
