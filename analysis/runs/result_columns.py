"""PURE: the figures of the engine's results that are copied into columns.

Measured and estimated figures go into separate columns, so that no list can mix the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from analysis.models import ALL_GPUS
from analysis.models.text import storable_text
from engine.estimate.gpus import gpus
from engine.result import Probe
from engine.savings import cost_per_million_samples_usd
from engine.stats import decisive_probes
from engine.validation.verdict import Verdict

POINTS_MAX = 12
_TEXT_COLUMNS = ("peak_phase", "error_type", "error_message", "failed_phase")
_LENGTHS = {"peak_phase": 40, "error_type": 200, "error_message": 10_000, "failed_phase": 40}


def result_columns(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a `RunResult.to_dict()` that lists filter and sort on; None for a missing part."""
    if "estimates" in result:
        return _estimates_columns(result["estimates"])
    if "checks" in result:
        return _validation_columns(result)
    device, boundary, waste, savings = (result[name] for name in ("device", "boundary", "waste", "savings"))
    recommended = result["recommended"] or {}
    return {
        "device_name": storable_text(str(device["name"]), 200),
        "capacity_bytes": device["capacity_bytes"],
        "is_shared": device.get("is_shared"),
        "largest_batch_size": boundary["largest_batch_size"],
        "certified": boundary["certified"],
        "boundary_reason": boundary["reason"],
        "recommended_batch_size": recommended.get("batch_size"),
        "recommended_samples_per_second": recommended.get("samples_per_second"),
        "recommended_memory_bytes": recommended.get("memory_bytes"),
        "current_waste_bytes": waste["at_current_bytes"],
        "speedup": result["speedup"],
        "speedup_low": result.get("speedup_low"),
        "speedup_high": result.get("speedup_high"),
        "is_speed_measurable": (result.get("speed") or {}).get("is_measurable"),
        "saving_per_run_usd": savings["per_run_usd"],
        "saving_per_year_usd": savings["per_year_usd"],
        "saving_per_year_usd_low": savings.get("per_year_usd_low"),
        "saving_per_year_usd_high": savings.get("per_year_usd_high"),
        **history_columns(result),
        **_graded_estimate_columns(result),
    }


def _validation_columns(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a `ValidationResult.to_dict()`: its verdict, and no figure that a measurement has."""
    device = result["device"]
    return {
        "device_name": storable_text(str(device["name"]), 200),
        "capacity_bytes": device["capacity_bytes"],
        "is_shared": device.get("is_shared"),
        "verdict": Verdict(result["verdict"]).value,
    }


def history_columns(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a measured `RunResult.to_dict()`."""
    recommended = result["recommended"] or {}
    return {
        "limit_bytes": result["waste"]["capacity_bytes"],
        "memory_curve": memory_points(map(Probe.from_dict, result["probes"])),
        "cost_per_million_samples_usd": cost_per_million_samples_usd(
            result["savings"]["price_per_hour_usd"], recommended.get("samples_per_second")
        ),
    }


def memory_points(probes: Iterable[Probe]) -> list[list[int]]:
    """Return batch size and bytes of the probes that fitted, reduced to POINTS_MAX with both ends included."""
    fits = [(size, p.memory_bytes) for size, p in decisive_probes(probes).items() if p.fits]
    known = [[size, held] for size, held in fits if held is not None]
    if len(known) <= POINTS_MAX:
        return known
    step = (len(known) - 1) / (POINTS_MAX - 1)
    return [known[round(place * step)] for place in range(POINTS_MAX)]


def _estimates_columns(estimates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns of an estimate for one card; of one for all cards, how many take today's batch size.

    Cards that cannot run the settings at all are not in the result, but count among all.
    """
    if not estimates:
        raise ValueError("an estimate without any card")
    columns = [_estimate_columns(estimate) for estimate in estimates]
    if len(columns) == 1:
        return columns[0]
    size = (estimates[0].get("spec") or {}).get("current_batch_size")
    if size is None:
        return {"gpu": ALL_GPUS}
    return {
        "gpu": ALL_GPUS,
        "estimated_cards": max(len(gpus()), len(columns)),
        "estimated_cards_that_fit": sum((each["estimated_safe_batch_size"] or 0) >= size for each in columns),
    }


def _estimate_columns(estimate: Mapping[str, Any]) -> dict[str, Any]:
    gpu = estimate["gpu"]
    return {
        "gpu": str(gpu["id"])[:40],
        "device_name": str(gpu["name"])[:200],
        "capacity_bytes": gpu["total_bytes"],
        "estimated_largest_batch_size": estimate["largest_batch_size"],
        "estimated_safe_batch_size": estimate["safe_batch_size"],
        "estimate_is_calibrated": bool(gpu["calibrated"]),
    }


def _graded_estimate_columns(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of the estimate that was made before a measurement, and its error.

    An unreadable estimate is left out: the measurement is valid without it.
    """
    estimate, error = result.get("estimate"), result.get("estimate_error") or {}
    try:
        columns = _estimate_columns(estimate) if estimate else {}
    except (KeyError, TypeError):
        return {}
    measured = ("device_name", "capacity_bytes")
    return {name: value for name, value in columns.items() if name not in measured} | {
        "estimate_peak_error": _finite(error.get("peak")),
        "estimate_boundary_error": _finite(error.get("boundary")),
    }


def _finite(value: object) -> float | None:
    is_figure = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_figure else None  # type: ignore[arg-type]


def probe_columns(probe: Probe) -> dict[str, Any]:
    """Return the columns of a `Measurement`. Missing text is stored empty."""
    stored = probe.to_dict()
    columns = {field.name: stored[field.name] for field in fields(Probe)}
    columns["timed_step_seconds"] = list(probe.timed_step_seconds)
    for name in _TEXT_COLUMNS:
        columns[name] = storable_text(columns[name] or "", _LENGTHS[name])
    return columns
