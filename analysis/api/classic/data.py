"""PURE: the engine's terms -> the classic contract's. Its `_gb` fields are GiB, its `_mb` fields MiB.

Its clients print figures unchanged, so they are rounded as in the summary of the command line: one decimal, money
two. The exact figures are added in bytes or under `exact`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from analysis.models import Device
from engine import __version__
from engine.catalog import WORKLOADS
from engine.documents.measured import Measured
from engine.results.result import Probe
from engine.results.stats import decisive_probes
from engine.text.units import GIB, MIB


def health_data(device: Device | None, now: datetime) -> dict[str, Any]:
    """Return the data of `GET /health`, of the device that a run gets by default. Without a device: null, not "cpu"."""
    gpu = device if device and device.kind != "cpu" else None
    return {
        "status": "healthy",
        "gpu_available": gpu is not None,
        "gpu_name": gpu and gpu.name,
        "gpu_memory_total_gb": gpu and _gib(gpu.capacity_bytes),
        "device": device and device.kind,
        "timestamp": now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "gpu_memory_total_bytes": gpu and gpu.capacity_bytes,
        "version": __version__,
    }


def models_data() -> list[dict[str, str | None]]:
    """Return the data of `GET /models`, the three models of the contract first. We add `task` to its `type`."""
    return [
        {
            "id": workload.id,
            "name": workload.name,
            "description": workload.description,
            "type": "nlp" if workload.is_text else "vision",
            "task": workload.task,
            "huggingface_id": workload.huggingface_id,
        }
        for workload in WORKLOADS.values()
    ]


def analysis_data(result: Mapping[str, Any], *, run_id: int) -> dict[str, Any]:
    """Convert `RunResult.to_dict()` to the `data` of `POST /analyze`. A figure that was not measured is null.

    Where only the least speed-up is claimed, `speedup` and money are null and their lower ends stand under `exact`.
    The contract's waste is the memory left unused at the optimal batch size; `current_waste_*`, which we
    add, is the memory left unused at the current one.
    """
    found = Measured.from_dict(result)
    waste, savings, optimal, current = found.waste, found.savings, found.recommended, found.current
    return {
        "run_id": run_id,
        "model_name": found.spec.model,
        "device": found.device.kind,
        "gpu_total_gb": _gib(waste.capacity_bytes),
        "results": [_size(probe) for probe in decisive_probes(found.probes).values()],
        "optimal_batch_size": optimal.batch_size if optimal else None,
        "optimal_memory_gb": _gib(optimal.memory_bytes if optimal else None),
        "current_batch_size": found.current_batch_size,
        "current_memory_gb": _gib(current.memory_bytes if current else None),
        "waste_gb": _gib(waste.at_recommended_bytes),
        "waste_percent": _percent(waste.at_recommended_fraction),
        "current_waste_gb": _gib(waste.at_current_bytes),
        "current_waste_percent": _percent(waste.at_current_fraction),
        "speedup": _rounded(found.speedup),
        "batch_size_ratio": _rounded(found.batch_size_ratio),
        "cost_savings_per_run": _rounded(savings.per_run_usd, 2),
        "cost_savings_annual": _rounded(savings.per_year_usd, 2),
        "certified": found.boundary.certified,
        "exact": _exact(found),
    }


def _exact(found: Measured) -> dict[str, Any]:
    waste, savings, optimal, current = found.waste, found.savings, found.recommended, found.current
    return {
        "capacity_bytes": waste.capacity_bytes,
        "recommended_memory_bytes": optimal.memory_bytes if optimal else None,
        "current_memory_bytes": current.memory_bytes if current else None,
        "waste_bytes": waste.at_recommended_bytes,
        "waste_fraction": waste.at_recommended_fraction,
        "current_waste_bytes": waste.at_current_bytes,
        "current_waste_fraction": waste.at_current_fraction,
        "speedup": found.speedup,
        "speedup_low": found.speedup_low,
        "speedup_high": found.speedup_high,
        "batch_size_ratio": found.batch_size_ratio,
        "saving_per_run_usd": savings.per_run_usd,
        "saving_per_year_usd": savings.per_year_usd,
        "saving_per_run_usd_low": savings.per_run_usd_low,
        "saving_per_year_usd_low": savings.per_year_usd_low,
    }


def _size(probe: Probe) -> dict[str, Any]:
    size = probe.memory_bytes
    error = probe.error_message or probe.outcome.value.replace("_", " ")
    return {
        "batch_size": probe.batch_size,
        "memory_bytes": size,
        "memory_mb": None if size is None else _rounded(size / MIB),
        "memory_gb": _gib(size),
        "success": probe.fits,
        "error": None if probe.fits else error,
    }


def _gib(size: int | None) -> float | None:
    return None if size is None else _rounded(size / GIB)


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else _rounded(100 * fraction)


def _rounded(figure: float | None, decimals: int = 1) -> float | None:
    return None if figure is None else round(figure, decimals)
