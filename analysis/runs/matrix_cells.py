"""PURE: a finished run's result as cells of the matrix, one for each card in the result.

Measured cells come from certified runs on a whole, unshared card. A card with a memory limit counts as another card,
so it gives no cell; a CPU always has a memory limit, which is then part of its name.

Both kinds recommend a size by the same rule: it leaves free the reserve that the run requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from analysis.models import CPU, RunKind
from analysis.models.matrix import CARD_LENGTH, SETTINGS_LENGTH
from engine.catalog import WORKLOADS
from engine.estimate.gpus import match
from engine.setting import Role
from engine.spec import DEFAULTS, RESERVE_FRACTION, SETTINGS
from engine.units import format_bytes

MEASURED, ESTIMATED = "measured", "estimated"
_OF_THE_KEY = ("precision", "optimizer")  # columns of a cell
_NOT_SETTINGS = {name for name, each in SETTINGS.items() if each.role is not Role.TRAINING} | set(_OF_THE_KEY)

Cell = dict[str, Any]


class FinishedRun(Protocol):
    """The fields of a stored run that are read here."""

    pk: int
    kind: str
    model: str
    spec: Mapping[str, Any]
    result: Mapping[str, Any] | None


def cells_of(run: FinishedRun) -> list[Cell]:
    """Return the columns of a run's cells, without `run` and `answered_at`; empty where it proves nothing of a card."""
    if run.result is None or run.model not in WORKLOADS or run.kind == RunKind.VALIDATION:
        return []
    if run.kind == RunKind.ESTIMATE:
        held = run.spec.get("memory_limit_bytes") is not None
        reserve = run.spec.get("reserve_fraction", RESERVE_FRACTION)
        on_cards = [estimate for estimate in run.result["estimates"] if estimate["gpu"]["id"] != CPU]
        return [] if held else [_key(run) | _estimated(estimate, reserve) for estimate in on_cards]
    measured = _measured(run.result)
    return [_key(run) | measured] if measured else []


def settings_key(spec: Mapping[str, Any]) -> str:
    """Return the non-default settings other than precision and optimizer: "gradient_checkpointing=True".

    Every field counts that is not a limit, assumption or workload, so a future setting will separate its runs, too.
    """
    parts = [
        f"{name}={value}"
        for name, value in sorted(spec.items())
        if name not in _NOT_SETTINGS and value is not None and value != DEFAULTS.get(name)
    ]
    return " ".join(parts)[:SETTINGS_LENGTH]


def _key(run: FinishedRun) -> Cell:
    workload = WORKLOADS[run.model]
    return {
        "model": run.model,
        "input_size": run.spec.get(workload.input_field) or workload.default_input_size,
        "precision": run.spec["precision"],
        "optimizer": run.spec["optimizer"],
        "settings": settings_key(run.spec),
    }


def _measured(result: Mapping[str, Any]) -> Cell | None:
    device, boundary = result["device"], result["boundary"]
    limit_bytes = device.get("limit_bytes") or device["capacity_bytes"]
    is_cpu = device["kind"] == "cpu"
    is_held = limit_bytes < device["capacity_bytes"]
    if not boundary["certified"] or device.get("is_shared") is not False or (is_held and not is_cpu):
        return None
    largest, recommended = result["largest"] or {}, result["recommended"] or {}
    reserve_fraction = (result.get("speed") or {}).get("reserve_fraction")
    shown = largest if reserve_fraction is None else recommended
    return {
        "kind": MEASURED,
        "card": _cpu_card(device["name"], limit_bytes) if is_cpu else _card(device),
        "card_name": device["name"][:200],
        "is_cpu": is_cpu,
        "memory_bytes": limit_bytes if is_cpu else device["capacity_bytes"],
        "largest_batch_size": boundary["largest_batch_size"],
        "safe_batch_size": None,
        "used_batch_size": recommended.get("batch_size"),
        "samples_per_second": recommended.get("samples_per_second"),
        "headroom_bytes": _left(limit_bytes, shown.get("memory_bytes")),
        "reserve_fraction": reserve_fraction,
    }


def _estimated(estimate: Mapping[str, Any], reserve_fraction: float) -> Cell:
    gpu, used = estimate["gpu"], _size_with_reserve(estimate, reserve_fraction)
    return {
        "kind": ESTIMATED,
        "card": gpu["id"][:CARD_LENGTH],
        "card_name": gpu["name"][:200],
        "is_cpu": False,
        "memory_bytes": gpu["total_bytes"],
        "largest_batch_size": estimate["largest_batch_size"],
        "safe_batch_size": estimate["safe_batch_size"],
        "used_batch_size": used,
        "samples_per_second": None,
        "headroom_bytes": None,
        "reserve_fraction": None if used is None else reserve_fraction,
    }


def _size_with_reserve(estimate: Mapping[str, Any], reserve_fraction: float) -> int | None:
    """Find the largest size predicted to leave the reserve, and never above the safe one; None where none is known.

    Between two predicted sizes memory is interpolated linearly. Peak memory is convex, so this is never too low.
    """
    limit_bytes: int | None = estimate.get("limit_bytes")
    safe: int = estimate["safe_batch_size"] or 0
    memory: dict[int, int | None] = {at["batch_size"]: _predicted_bytes(at) for at in estimate.get("at", ())}
    points = sorted((size, taken) for size, taken in memory.items() if taken is not None)
    if limit_bytes is None or not safe or not points:
        return None
    allowed = limit_bytes - estimate["gpu"]["total_bytes"] * reserve_fraction
    below = max((point for point in points if point[1] <= allowed), default=None)
    if below is None:
        return None
    above = min((point for point in points if point[0] > below[0]), default=None)
    size = below[0]
    if above is not None:
        size += int((above[0] - size) * (allowed - below[1]) / (above[1] - below[1]))
    return min(size, safe)


def _predicted_bytes(at: Mapping[str, Any]) -> int | None:
    reserved: int | None = at.get("peak_reserved_bytes")
    allocated: int | None = at.get("peak_allocated_bytes")
    return allocated if reserved is None else reserved


def _card(device: Mapping[str, Any]) -> str:
    """Return the catalogue's id, which estimates use too; of a card that is not in it, the card's own name."""
    gpu = match(device["name"], device["capacity_bytes"]) if device["kind"] == "cuda" else None
    return gpu.id if gpu else device["name"][:CARD_LENGTH]


def _cpu_card(name: str, limit_bytes: int) -> str:
    return f"{name[:200]} limited to {format_bytes(limit_bytes)}"


def _left(limit_bytes: int, memory_bytes: int | None) -> int | None:
    return None if memory_bytes is None else limit_bytes - memory_bytes
