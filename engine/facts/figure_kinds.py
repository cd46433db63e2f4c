"""What kind of figure each one of a result is. The one table of it; every result carries it as `kinds`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MEASURED, EMULATED, ESTIMATED = "measured", "emulated", "estimated"
"""The grade of a figure: read on the real devices, on one device standing in for several, or computed."""
DERIVED, ASSUMED = "derived", "assumed"

FIGURE_KINDS: dict[str, str] = {
    "boundary": MEASURED,
    "probes": MEASURED,
    **{
        f"{point}.{figure}": MEASURED
        for point in ("largest", "fastest", "recommended", "current", "largest_with_reserve")
        for figure in ("memory_bytes", "peak_allocated_bytes", "peak_reserved_bytes", "samples_per_second")
    },
    "speedup": MEASURED,  # the ratio itself: both sizes in the same rounds
    "batch_size_ratio": DERIVED,
    "waste": DERIVED,
    "savings.per_run_usd": DERIVED,
    "savings.per_year_usd": DERIVED,
    "savings.cost_per_run_usd": DERIVED,
    "savings.price_per_hour_usd": ASSUMED,
    "savings.hours_per_run": ASSUMED,
    "savings.runs_per_year": ASSUMED,
    "speed.reserve_fraction": ASSUMED,
    "spec.current_batch_size": ASSUMED,
    "memory_breakdown": MEASURED,
    "estimate": ESTIMATED,
    "estimate_error": DERIVED,
}
"""By the name of the figure, or of the group that it stands in. The ends of an interval are of the figure's kind."""


def grade_of(spec: Mapping[str, Any]) -> str:
    return EMULATED if spec.get("emulate_ranks") else MEASURED


def figure_kinds(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the kinds of a result with this spec: where ranks were emulated, nothing of it was measured on them."""
    grade = grade_of(spec)
    return {name: grade if kind == MEASURED else kind for name, kind in FIGURE_KINDS.items()}
