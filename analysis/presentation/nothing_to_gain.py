"""The result where today's batch size is the recommended one: why nothing is gained, and what else may help. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.presentation.formatting import bytes_text, factor, factor_range, rate, rate_range, round_percent
from analysis.presentation.stored_result import StoredResult
from engine.catalog.stored_workload import stored_workload
from engine.result import Point
from engine.training_spec import is_own_training

ROOM_FROM = 0.2
"""Share of the memory from which free memory is room for something larger."""


@dataclass(frozen=True, slots=True)
class NothingToGain:
    """The evidence in a sentence, and settings other than the batch size that were not measured."""

    text: str
    others: tuple[str, ...]


def nothing_to_gain(result: StoredResult) -> NothingToGain | None:
    """Return the explanation; None where another size is recommended, or where speeds were not compared."""
    kept = result.recommended
    is_kept = kept is not None and kept.batch_size == result.current_batch_size
    if kept is None or not is_kept or result.is_check or not result.is_speed_measurable:
        return None
    return NothingToGain(_evidence(result, kept), tuple(_others(result, kept)))


def _evidence(result: StoredResult, kept: Point) -> str:
    size, fastest = kept.batch_size, result.fastest
    if result.training is not None and result.training.turns is not None:
        return _as_fast_as(size, result.training.turns)
    if fastest is None or kept.samples_per_second is None:
        return f"Your {size:,} is the recommended size."
    if fastest.batch_size == size:
        return f"Your {size:,} is the fastest size measured, with {_speed(kept)}."
    other = f"the fastest size measured, {fastest.batch_size:,}, {_speed(fastest)}"
    return f"Your {size:,} reaches {_speed(kept)}; {other}{_without_reserve(result, fastest)}."


def _as_fast_as(size: int, turns: Mapping[str, Any]) -> str:
    """Write "Batch 48 is 1.01x as fast as your 16 (0.99 to 1.02x)."."""
    ratio, other = turns["ratio"], turns["batch_sizes"][1]
    between = factor_range(ratio["low"], ratio["high"])
    return f"Batch {other:,} is {factor(ratio['value'])} as fast as your {size:,} ({between})."


def _without_reserve(result: StoredResult, point: Point) -> str:
    """Say why a faster size is not recommended, where its memory is the reason."""
    if result.speed is None or point.memory_bytes is None:
        return ""
    fraction = result.speed.reserve_fraction
    is_kept = result.limit_bytes - point.memory_bytes >= fraction * result.limit_bytes
    return "" if is_kept else f", but it leaves less than {round_percent(fraction)} of the memory free"


def _speed(point: Point) -> str:
    interval = rate_range(point.samples_per_second_low, point.samples_per_second_high)
    return f"{rate(point.samples_per_second)} samples/s{f' ({interval})' if interval else ''}"


def _others(result: StoredResult, kept: Point) -> list[str]:
    """Name what may make this training faster or larger; none of it was measured in this run."""
    free, workload = result.free_bytes or 0, stored_workload(result.spec)
    has_room, tries = free >= ROOM_FROM * result.limit_bytes, []
    if is_own_training(result.spec):  # nothing is known that could be set otherwise
        return []
    if result.spec.get("gradient_checkpointing") and has_room:
        tries.append("Without gradient checkpointing: it computes activations twice to save memory that is free here.")
    if result.spec["precision"] == "fp32" and result.device.kind != "cpu":
        tries.append("bf16 instead of fp32, where the device has it: activations take about half the memory.")
    if has_room and workload is not None:
        larger = "longer sequences" if workload.is_text else "larger images"
        tries.append(f"{larger.capitalize()} or a larger model: {bytes_text(free)} are free at {kept.batch_size:,}.")
    return tries
