"""Writes the lines of `estimate`'s what-if questions: the answer, and everything that was tried."""

from __future__ import annotations

from collections.abc import Sequence

from ...estimate.alternatives import ORDER
from ...estimate.frontier import Frontier
from ...estimate.largest import Largest
from ...estimate.what_to_change import WhatToChange
from ...program import PROGRAM
from ...text.units import format_bytes
from .terminal import table_lines, wrapped

ADVICE_SHOWN = 5


def change_lines(found: WhatToChange, width: int | None = None) -> list[str]:
    rows = [
        (
            variant.label,
            str(variant.largest_batch_size or "none"),
            str(variant.safe_batch_size or "none"),
            format_bytes(variant.memory_bytes),
            variant.outcome,
        )
        for variant in found.variants
    ]
    left_out = [f"Left out: {each.label}: {each.reason}" for each in found.left_out]
    headings = ("settings", "largest", "with margin", f"at {found.batch_size:,}", "")
    table = table_lines(headings, rows, width, right=(1, 2, 3))
    return ["", *wrapped(_advice(found), width), "", *table, *wrapped(left_out, width), ""]


def _advice(found: WhatToChange) -> list[str]:
    batch, limit = f"batch {found.batch_size:,}", format_bytes(found.limit_bytes)
    if found.requested.is_safe:
        return [f"WHAT TO CHANGE, estimated: nothing, {batch} would fit into {limit} with the margin."]
    if not found.advice:
        return [f"WHAT TO CHANGE, estimated: nothing that was tried makes {batch} fit into {limit} with the margin."]
    title = f"WHAT TO CHANGE so that {batch} fits into {limit}, estimated, the smallest change first:"
    shown = found.advised[:ADVICE_SHOWN]
    rows = [f"  {number}. {each.label}: {'; '.join(each.costs)}" for number, each in enumerate(shown, start=1)]
    return [title, *rows, f"  {ORDER} Speed is not estimated: measure it."]


def largest_lines(found: Largest, width: int | None = None) -> list[str]:
    rows = [(each.label, format_bytes(each.memory_bytes), each.outcome) for each in found.tried]
    table = table_lines(("tried", f"batch {found.batch_size:,}", ""), rows, width, right=(1,))
    count, limit = f"{len(rows)} of {found.values_count}", format_bytes(found.limit_bytes)
    return ["", *table, "", *wrapped([f"{count} values were tried; of {limit} for the training."], width), ""]


def frontier_lines(frontier: Frontier, width: int | None = None) -> list[str]:
    spec, gpu = frontier.spec, frontier.gpu
    settings = f"{spec.precision}, optimizer {spec.optimizer}"
    title = f"ESTIMATE, nothing was measured: {spec.workload.name} on {gpu.name}, {settings}"
    shown, table = _shown(frontier, width)
    is_narrow = len(shown) < len(frontier.rows[0].cells)
    is_cut = any(row.limits == "max_batch_size" for row in frontier.rows)
    notes = [
        f"Memory in GiB by batch size; of {format_bytes(frontier.limit_bytes)} for the training; x: does not fit.",
        *([f"Batch sizes below {shown[0]} have no room here: pipe it, or widen the terminal."] if is_narrow else []),
        *(["+: or more, the largest that was tried (--max)."] if is_cut else []),
        frontier.text,
        f"No speed is known: measure the lengths you use with {PROGRAM} {spec.model}.",
        f"Took {frontier.seconds:.1f} s.",
    ]
    return ["", *wrapped([title], width), "", *table, "", *wrapped(notes, width)]


def _shown(frontier: Frontier, width: int | None) -> tuple[Sequence[int], list[str]]:
    """Return the batch sizes whose memory is shown, on a narrow terminal the larger ones alone, and the table."""
    grid = [cell.batch_size for cell in frontier.rows[0].cells]
    while True:
        table = _table(frontier, grid, width)
        if width is None or len(grid) == 1 or max(map(len, table)) <= width:
            return grid, table
        grid = grid[1:]


def _table(frontier: Frontier, grid: Sequence[int], width: int | None) -> list[str]:
    unit = "tokens" if frontier.unit == "tokens" else "pixels a side"
    headings = (unit, "largest", "with margin", "at that size", *(f"at {size}" for size in grid))
    rows = []
    for row in frontier.rows:
        memory = {cell.batch_size: f"{cell.memory_bytes / 2**30:.1f}{'' if cell.fits else ' x'}" for cell in row.cells}
        sizes = map(row.size_text, (row.largest_batch_size, row.safe_batch_size))
        at_safe = f"{row.units_at_safe:,} {frontier.unit}"
        rows.append((str(row.input_size), *sizes, at_safe, *(memory[size] for size in grid)))
    return table_lines(headings, rows, width, right=range(len(headings)))
