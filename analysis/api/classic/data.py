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
from engine.result import Probe
from engine.stats import decisive_probes
from engine.units import GIB, MIB


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

    The contract's waste is the memory left unused at the optimal batch size; `current_waste_*`, which we
    add, is the memory left unused at the current one.
    """
    device, waste, savings = result["device"], result["waste"], result["savings"]
    optimal, current = result["recommended"] or {}, result["current"] or {}
    probes = decisive_probes(map(Probe.from_dict, result["probes"]))
    return {
        "run_id": run_id,
        "model_name": result["spec"]["model"],
        "device": device["kind"],
        "gpu_total_gb": _gib(waste["capacity_bytes"]),
        "results": [_size(probe) for probe in probes.values()],
        "optimal_batch_size": optimal.get("batch_size"),
        "optimal_memory_gb": _gib(optimal.get("memory_bytes")),
        "current_batch_size": result["spec"]["current_batch_size"],
        "current_memory_gb": _gib(current.get("memory_bytes")),
        "waste_gb": _gib(waste["at_recommended_bytes"]),
        "waste_percent": _percent(waste["at_recommended_fraction"]),
        "current_waste_gb": _gib(waste["at_current_bytes"]),
        "current_waste_percent": _percent(waste["at_current_fraction"]),
        "speedup": _rounded(result["speedup"]),
        "batch_size_ratio": _rounded(result["batch_size_ratio"]),
        "cost_savings_per_run": _rounded(savings["per_run_usd"], 2),
        "cost_savings_annual": _rounded(savings["per_year_usd"], 2),
        "certified": result["boundary"]["certified"],
        "exact": _exact(result),
    }


def _exact(result: Mapping[str, Any]) -> dict[str, Any]:
    waste, savings = result["waste"], result["savings"]
    optimal, current = result["recommended"] or {}, result["current"] or {}
    return {
        "capacity_bytes": waste["capacity_bytes"],
        "recommended_memory_bytes": optimal.get("memory_bytes"),
        "current_memory_bytes": current.get("memory_bytes"),
        "waste_bytes": waste["at_recommended_bytes"],
        "waste_fraction": waste["at_recommended_fraction"],
        "current_waste_bytes": waste["at_current_bytes"],
        "current_waste_fraction": waste["at_current_fraction"],
        # results of before 0.5 have no interval
        **{name: result.get(name) for name in ("speedup", "speedup_low", "speedup_high", "batch_size_ratio")},
        "saving_per_run_usd": savings["per_run_usd"],
        "saving_per_year_usd": savings["per_year_usd"],
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
