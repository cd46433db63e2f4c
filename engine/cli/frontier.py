"""`python -m engine estimate MODEL --gpu CARD --frontier 128,256,512`: length x batch, and a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from ..estimate.estimator import Estimator
from ..estimate.frontier import Frontier, frontier_of, grid_of, specs_of
from ..estimate.gpus import Gpu
from ..estimate.types import describe_size
from ..execution import Emit
from ..program import PROGRAM
from ..spec import RunSpec
from ..text.units import format_bytes
from .printing.terminal import table_lines, wrapped

_HEADINGS = ("largest", "with margin", "at that size")


def frontiers(spec: RunSpec, cards: Sequence[Gpu | None], sizes: Sequence[int], *, emit: Emit) -> list[Frontier]:
    """Estimate each length once for all cards. A card that does not support the request is left out."""
    estimates = [Estimator(each, emit=emit).estimates(cards, grid_of(spec)) for each in specs_of(spec, sizes)]
    return [frontier_of(spec, of_card) for of_card in zip(*estimates, strict=True)]


def frontier_lines(frontier: Frontier, width: int | None = None) -> list[str]:
    spec, gpu = frontier.spec, frontier.gpu
    unit = "tokens" if frontier.unit == "tokens" else "pixels a side"
    settings = f"{spec.precision}, optimizer {spec.optimizer}"
    title = f"ESTIMATE, nothing was measured: {spec.workload.name} on {gpu.name}, {settings}"
    grid = _grid_shown(frontier, unit, width)
    is_narrow = grid[0] > frontier.rows[0].cells[0].batch_size
    is_cut = any(row.limits == "max_batch_size" for row in frontier.rows)
    notes = [
        f"Memory in GiB by batch size; of {format_bytes(frontier.limit_bytes)} for the training; x: does not fit.",
        *([f"Batch sizes below {grid[0]} have no room here: pipe it, or widen the terminal."] if is_narrow else []),
        *(["+: or more, the largest that was tried (--max)."] if is_cut else []),
        frontier.text,
        f"No speed is known: measure the lengths you use with {PROGRAM} {spec.model}.",
        f"Took {frontier.seconds:.1f} s.",
    ]
    return ["", *wrapped([title], width), "", *_lines(frontier, unit, grid, width), "", *wrapped(notes, width)]


def _grid_shown(frontier: Frontier, unit: str, width: int | None) -> list[int]:
    """Return the batch sizes whose memory is shown: on a narrow terminal the larger ones alone."""
    grid = [cell.batch_size for cell in frontier.rows[0].cells]
    while width is not None and len(grid) > 1 and max(map(len, _lines(frontier, unit, grid, width))) > width:
        grid = grid[1:]
    return grid


def _lines(frontier: Frontier, unit: str, grid: Sequence[int], width: int | None) -> list[str]:
    headings, rows = (unit, *_HEADINGS, *(f"at {size}" for size in grid)), []
    for row in frontier.rows:
        memory = {cell.batch_size: f"{cell.memory_bytes / 2**30:.1f}{'' if cell.fits else ' x'}" for cell in row.cells}
        known = (row.largest_batch_size, row.safe_batch_size)
        sizes = (describe_size(size, row.limits, row.largest_batch_size) for size in known)
        at_safe = f"{row.units_at_safe:,} {frontier.unit}"
        rows.append((str(row.input_size), *sizes, at_safe, *(memory[size] for size in grid)))
    return table_lines(headings, rows, width, right=range(len(headings)))
