"""A made-up H100, and what the parts of each experiment see on it when all is as expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.card_experiments.setting import FULL, Machine, Seen, Setting
from engine.text.units import GIB, MIB

N = 1_300
FOREIGN_BYTES, USED_BYTES = 5 * MIB, 79 * GIB


def machine(**fields: Any) -> Machine:
    known = {
        "gpu": "NVIDIA H100 80GB HBM3",
        "uuid": None,
        "total_bytes": 80 * GIB,
        "compute_capability": "9.0",
        "driver": "580.1",
        "torch": "2.13.0",
        "cuda": "13.0",
        "cudnn": 92000,
        "transformers": "5.23.0",
        "python": "3.12.3",
        "is_stand_in": False,
    }
    return Machine(**{**known, **fields})


def setting(earlier: Mapping[int, Mapping[str, Seen]] | None = None, **fields: Any) -> Setting:
    return Setting("cuda:0", machine(**fields), FULL, earlier if earlier is not None else {6: seen()[6]})


def probe(batch_size: int, purpose: str = "search", outcome: str = "fits", **fields: Any) -> dict[str, Any]:
    known = {
        "batch_size": batch_size,
        "purpose": purpose,
        "outcome": outcome,
        "peak_allocated_bytes": 77 * GIB,
        "peak_reserved_bytes": 78 * GIB,
        "device_used_bytes": USED_BYTES,
        "allocator_retries": 0,
    }
    return {**known, **fields}


def result(largest: int | None = N, certified: bool = True, reason: str = "out_of_memory", **fields: Any) -> dict:
    boundary = {
        "largest_batch_size": largest,
        "certified": certified,
        "reason": reason,
        "refusal": "CUDA out of memory. 2.00 GiB allowed",
        "soak_steps": 20,
        "note": None,
    }
    size = largest or 0
    return {
        "boundary": boundary,
        "probes": [probe(1), probe(size), probe(size + 1, outcome="out_of_memory"), probe(size, "soak")],
        "device": {"foreign_used_bytes": FOREIGN_BYTES},
        "largest": {"batch_size": size, "memory_bytes": 78 * GIB},
        "current": {"batch_size": 16, "step_seconds": 0.02},
        "recommended": {"batch_size": 256, "step_seconds": 0.2},
        **fields,
    }


def run(**fields: Any) -> dict[str, Any]:
    return {"result": result(**fields), "seconds": 60.0, "exit_status": 0}


def seen() -> dict[int, dict[str, Any]]:
    """By experiment and part."""
    limited = run(largest=600)
    for row in limited["result"]["probes"]:
        row["peak_reserved_bytes"] = 2 * GIB
    constants = {
        "context_bytes": 600 * MIB,
        "cublas_workspace_bytes": 33_554_432,
        "autograd_workspace_bytes": 33_554_432,
        "cublaslt_workspace_bytes": 0,
    }
    kill = {"held_after_bytes": 0, "settled_seconds": 0.0}
    pattern = {"differences": [], "patterns": 20, "events_each": 600}
    watched = {**run(), "process_bytes_in_soak": USED_BYTES - FOREIGN_BYTES}
    below = {"batch_size": N, "steps": 200, "out_of_memory": False}
    above = {"batch_size": N + 1, "steps": 1, "out_of_memory": True}
    return {
        1: {"run": limited},
        2: {f"run {i}": constants for i in (1, 2, 3)},
        3: {"kills": {"kills": [kill] * 20}},
        4: dict.fromkeys(("plain", "limited", "expandable"), pattern),
        5: {f"{name} {precision}": prediction(name) for name, precision in FULL.predictions},
        6: {f"run {i}": watched for i in (1, 2, 3)},
        7: {"N": below, "N+1": above},
        8: {},
        9: {"run": run(largest=900), "N": {"samples_per_second": 1010.0}, "N-8": {"samples_per_second": 1000.0}},
        10: {"run": run(largest=N + 4)},
        11: {"run": {**run(largest=900, certified=False, reason="foreign_memory"), "tenant": {"took_bytes": 20 * GIB}}},
        12: {
            "current": {"batch_size": 16, "mean_step_seconds": 0.0202, "steps": 3000},
            "recommended": {"batch_size": 256, "mean_step_seconds": 0.204, "steps": 300},
        },
        13: {f"{model} {name}": run() for model, name in FULL.classic},
    }


def prediction(name: str, error: float = -0.01, method: str = "fake_cuda") -> dict[str, Any]:
    errors = {"peak_allocated_bytes": error, "peak_reserved_bytes": error}
    return {"name": name, "errors": errors, "predicted": {"method": method}}
