"""PURE: a finished run's result as cells of the matrix, one for each card in the result.

Measured cells come from certified runs on a whole, unshared card. A card with a memory limit counts as another card,
so it gives no cell; a CPU always has a memory limit, which is then part of its name.

Only compared speeds recommend a size, so an estimate has none. Both kinds know the largest that leaves free the reserve
that the run requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.models import CPU
from analysis.models.matrix import CARD_LENGTH, SETTINGS_LENGTH
from engine.estimate.gpus import match
from engine.estimate.spec import OWN
from engine.questions.documents.estimated import Estimated, EstimatedCard
from engine.questions.documents.measured import Measured
from engine.search.reserve import requested_fraction
from engine.settings.catalog import WORKLOADS, Workload
from engine.settings.setting import Role
from engine.settings.spec import DEFAULTS, RESERVE_FRACTION, SETTINGS, trained_settings
from engine.text.units import format_bytes

MEASURED, ESTIMATED = "measured", "estimated"
_OF_THE_KEY = ("precision", "optimizer")  # columns of a cell
_NOT_SETTINGS = {name for name, each in SETTINGS.items() if each.role is not Role.TRAINING} | {*_OF_THE_KEY, *OWN}

Cell = dict[str, Any]
"""The columns of a cell that its kind knows: the others are empty."""


def measured_cells(spec: Mapping[str, Any], found: Measured) -> list[Cell]:
    """Return the columns of a measurement's cell, without `run` and `answered_at`; empty where it proves nothing."""
    workload = WORKLOADS.get(spec["model"])
    if workload is None or (measured := _measured(found)) is None:
        return []
    return [key_of(spec, workload) | measured]


def cells_of_ranks(spec: Mapping[str, Any], found: Measured) -> list[Cell]:
    """Return the cell of a measurement on several ranks; empty for own trainings and for emulated ranks."""
    if not spec.get("catalogue") or spec.get("emulate_ranks"):
        return []
    return measured_cells(trained_settings(spec), found)


def estimated_cells(spec: Mapping[str, Any], found: Estimated) -> list[Cell]:
    workload = WORKLOADS.get(spec["model"])
    if workload is None or spec.get("memory_limit_bytes") is not None:
        return []
    key, asked = key_of(spec, workload), (spec.get("reserve_fraction", RESERVE_FRACTION), spec.get("reserve_bytes"))
    on_cards = [each for each in found.estimates if each.gpu.id != CPU]
    return [key | _estimated(each, requested_fraction(*asked, each.gpu.total_bytes)) for each in on_cards]


def key_of(spec: Mapping[str, Any], workload: Workload) -> Cell:
    return {
        "model": spec["model"],
        "input_size": spec.get(workload.input_field) or workload.default_input_size,
        "precision": spec["precision"],
        "optimizer": spec["optimizer"],
        "settings": settings_key(spec),
    }


def settings_key(spec: Mapping[str, Any]) -> str:
    """Return non-default settings but precision and optimizer: "gradient_checkpointing=True"; future ones count too."""
    parts = [
        f"{name}={value}"
        for name, value in sorted(spec.items())
        if name not in _NOT_SETTINGS and value is not None and value != DEFAULTS.get(name)
    ]
    return " ".join(parts)[:SETTINGS_LENGTH]


def _measured(result: Measured) -> Cell | None:
    device, boundary, recommended = result.device, result.boundary, result.recommended
    limit_bytes = device.limit_bytes or device.capacity_bytes
    is_cpu = device.kind == "cpu"
    is_held = limit_bytes < device.capacity_bytes
    if not boundary.certified or device.is_shared or (is_held and not is_cpu):
        return None
    reserve_fraction = result.speed.reserve_fraction if result.speed else None
    with_reserve = result.largest_with_reserve
    # the catalogue's id, which estimates use too; of a card that is not in it, the card's own name
    gpu = match(device.name, device.capacity_bytes) if device.kind == "cuda" else None
    card = gpu.id if gpu else device.name[:CARD_LENGTH]
    used_bytes = None if recommended is None else recommended.memory_bytes
    return {
        "kind": MEASURED,
        "card": f"{device.name[:200]} limited to {format_bytes(limit_bytes)}" if is_cpu else card,
        "card_name": device.name[:200],
        "is_cpu": is_cpu,
        "memory_bytes": limit_bytes if is_cpu else device.capacity_bytes,
        "largest_batch_size": boundary.largest_batch_size,
        "recommended_batch_size": recommended.batch_size if recommended else None,
        "with_reserve_batch_size": with_reserve.batch_size if with_reserve else None,
        "samples_per_second": recommended.samples_per_second if recommended else None,
        "headroom_bytes": None if used_bytes is None else limit_bytes - used_bytes,
        "reserve_fraction": reserve_fraction,
    }


def _estimated(estimate: EstimatedCard, reserve_fraction: float) -> Cell:
    gpu, with_reserve = estimate.gpu, _size_with_reserve(estimate, reserve_fraction)
    return {
        "kind": ESTIMATED,
        "card": gpu.id[:CARD_LENGTH],
        "card_name": gpu.name[:200],
        "memory_bytes": gpu.total_bytes,
        "largest_batch_size": estimate.largest_batch_size,
        "safe_batch_size": estimate.safe_batch_size,
        "with_reserve_batch_size": with_reserve,
        "reserve_fraction": None if with_reserve is None else reserve_fraction,
    }


def _size_with_reserve(estimate: EstimatedCard, reserve_fraction: float) -> int | None:
    """Interpolate the largest size that leaves the reserve, at most the safe one; convex memory: never too low."""
    points = sorted({at.batch_size: at.memory_bytes for at in estimate.at}.items())
    allowed = estimate.limit_bytes - estimate.gpu.total_bytes * reserve_fraction
    below = max((point for point in points if point[1] <= allowed), default=None)
    if below is None or not estimate.safe_batch_size:
        return None
    above = min((point for point in points if point[0] > below[0]), default=None)
    size = below[0]
    if above is not None:
        size += int((above[0] - size) * (allowed - below[1]) / (above[1] - below[1]))
    return min(size, estimate.safe_batch_size)
