"""The lines that `estimate --largest` prints: the answer, and every value that was tried."""

from __future__ import annotations

from ...estimate.largest import Largest
from ...text.units import format_bytes
from .terminal import table_lines, wrapped


def largest_answer(found: Largest, gpu_name: str) -> str:
    """Write "ESTIMATE for NVIDIA T4: at batch 1, 4,096 tokens fit with the margin of 21.9 %; 4,352 would not."."""
    return f"ESTIMATE for {gpu_name}: {found.text[:1].lower()}{found.text[1:]}"


def largest_lines(found: Largest, width: int | None = None) -> list[str]:
    rows = [(each.label, format_bytes(each.memory_bytes), each.outcome) for each in found.tried]
    table = table_lines(("tried", f"batch {found.batch_size:,}", ""), rows, width, right=(1,))
    notes = [
        f"{len(rows)} of {found.values_count} values were tried; of {format_bytes(found.limit_bytes)} for the training."
    ]
    return ["", *table, "", *wrapped(notes, width), ""]
