"""PURE: from the probes of a run to its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine import savings, stats
from engine.result import Boundary, DeviceFacts, Point, Probe, RunResult, Timings
from engine.spec import RunSpec


def answer(
    spec: RunSpec,
    device: DeviceFacts,
    boundary: Boundary,
    probes: Sequence[Probe],
    *,
    environment: dict[str, Any],
    timings: Timings,
) -> RunResult:
    """The result of a run whose search is over. Only sizes that trained appear as points of the answer."""
    decisive = stats.decisive_probes(probes)
    fitting = [p for size, p in decisive.items() if p.fits and size <= (boundary.largest_batch_size or 0)]
    points = {p.batch_size: Point.of(p, device) for p in fitting}

    def point(probe: Probe | None) -> Point | None:
        return None if probe is None else points[probe.batch_size]

    best, chosen = stats.fastest(fitting), stats.recommended(fitting)
    current, recommended = points.get(spec.current_batch_size), point(chosen)
    speedup = savings.speedup(current, recommended)
    return RunResult(
        spec=spec,
        device=device,
        boundary=boundary,
        largest=points.get(boundary.largest_batch_size or 0),
        fastest=point(best),
        recommended=recommended,
        current=current,
        waste=savings.waste(device.limit_bytes or device.capacity_bytes, current, recommended),
        speedup=speedup,
        batch_size_ratio=None if recommended is None else recommended.batch_size / spec.current_batch_size,
        savings=savings.savings(spec, speedup),
        probes=tuple(probes),
        environment=environment,
        timings=timings,
    )
