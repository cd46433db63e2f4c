"""PURE: what is copied out of the engine's answers into columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from engine.result import Probe

_TEXT_COLUMNS = ("peak_phase", "error_type", "error_message", "failed_phase")
_LENGTHS = {"peak_phase": 40, "error_type": 200, "error_message": 10_000, "failed_phase": 40}


def result_columns(result: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a `RunResult.to_dict()` that lists filter and sort on. A missing part gives None."""
    device, boundary, waste, savings = (result[name] for name in ("device", "boundary", "waste", "savings"))
    recommended = result["recommended"] or {}
    return {
        "device_name": str(device["name"])[:200],
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
        "saving_per_run_usd": savings["per_run_usd"],
        "saving_per_year_usd": savings["per_year_usd"],
    }


def probe_columns(probe: Probe) -> dict[str, Any]:
    """The columns of a `Measurement`. Text that the engine has not got is stored empty."""
    stored = probe.to_dict()
    columns = {field.name: stored[field.name] for field in fields(Probe)}
    columns["timed_step_seconds"] = list(probe.timed_step_seconds)
    for name in _TEXT_COLUMNS:
        columns[name] = storable_text(columns[name] or "", _LENGTHS[name])
    return columns


def storable_text(text: str, length: int) -> str:
    """At most `length` characters, without what a database refuses: NUL and lone surrogates."""
    return text[:length].replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
