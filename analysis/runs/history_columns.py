"""PURE: what a list of runs shows beside the answer itself, taken out of a result once, when the run ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.presentation.charts.sparkline import memory_points
from engine.result import Probe

_MILLION, _HOUR_SECONDS = 1_000_000, 3_600


def history_columns(result: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a measured `RunResult.to_dict()`."""
    recommended = result["recommended"] or {}
    return {
        "limit_bytes": result["waste"]["capacity_bytes"],
        "memory_curve": memory_points(map(Probe.from_dict, result["probes"])),
        "cost_per_million_samples_usd": cost_per_million_samples_usd(
            result["savings"]["price_per_hour_usd"], recommended.get("samples_per_second")
        ),
    }


def cost_per_million_samples_usd(price_per_hour_usd: float, samples_per_second: float | None) -> float | None:
    """The assumed price of the hour over the measured samples of the hour. Without a speed there is none."""
    if not samples_per_second:
        return None
    return price_per_hour_usd / (samples_per_second * _HOUR_SECONDS) * _MILLION
