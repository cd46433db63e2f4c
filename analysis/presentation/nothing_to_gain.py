"""The result where today's batch size is the recommended one: why nothing is gained, and what else may help. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.presentation.formatting import bytes_text, rate, rate_range
from engine.catalog.stored_workload import stored_workload
from engine.describe.speed import speed_of
from engine.documents.measured import Measured
from engine.results.result import Point
from engine.text.today import name_today
from engine.text.units import sentence_case

ROOM_FROM = 0.2
"""Share of the memory from which free memory is room for something larger."""


@dataclass(frozen=True, slots=True)
class NothingToGain:
    """The evidence in a sentence, and settings other than the batch size that were not measured."""

    text: str
    others: tuple[str, ...]


def nothing_to_gain(result: Measured) -> NothingToGain | None:
    kept = result.recommended
    if kept is None or kept.batch_size != result.current_batch_size or result.is_check:
        return None
    return NothingToGain(_evidence(result, kept), tuple(_others(result, kept)))


def _evidence(result: Measured, kept: Point) -> str:
    said = f"{sentence_case(speed_of(result).said)}."
    if kept.samples_per_second is None:
        return said
    return f"{said} {sentence_case(name_today(kept.batch_size))} reaches {_speed(kept)}."


def _speed(point: Point) -> str:
    interval = rate_range(point.samples_per_second_low, point.samples_per_second_high)
    return f"{rate(point.samples_per_second)} samples/s{f' ({interval})' if interval else ''}"


def _others(result: Measured, kept: Point) -> list[str]:
    free, workload = result.free_bytes or 0, stored_workload(result.spec)
    has_room, tries = free >= ROOM_FROM * result.limit_bytes, []
    if result.spec.get("gradient_checkpointing") and has_room:
        tries.append("Without gradient checkpointing: it computes activations twice to save memory that is free here.")
    if result.spec.get("precision") == "fp32" and result.device.kind != "cpu":
        tries.append("bf16 instead of fp32, where the device has it: activations take about half the memory.")
    if has_room and workload is not None:
        larger = "longer sequences" if workload.is_text else "larger images"
        tries.append(f"{larger.capitalize()} or a larger model: {bytes_text(free)} are free at {kept.batch_size:,}.")
    return tries
