"""`python -m engine estimate MODEL --gpu CARD --frontier 128,256,512`: length x batch, and a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from ..estimate.answers import Answers, Emit
from ..estimate.frontier import Frontier, Row, frontier_of, grid_of, specs_of
from ..estimate.gpus import Gpu
from ..program import PROGRAM
from ..spec import RunSpec
from ..units import format_bytes

_HEADINGS = ("largest", "safe", "at the safe size")


def frontiers(spec: RunSpec, cards: Sequence[Gpu | None], sizes: Sequence[int], *, emit: Emit) -> list[Frontier]:
    """Estimate each length once for all cards. A card that cannot do what is requested is left out."""
    estimates = [Answers(each, emit=emit).of(cards, grid_of(spec)) for each in specs_of(spec, sizes)]
    return [frontier_of(spec, of_card) for of_card in zip(*estimates, strict=True)]


def frontier_lines(frontier: Frontier) -> list[str]:
    """Return the table of one card, and the budget."""
    spec, gpu = frontier.spec, frontier.gpu
    unit = "tokens" if frontier.unit == "tokens" else "pixels a side"
    settings = f"{spec.precision}, optimizer {spec.optimizer}"
    title = f"ESTIMATE, nothing was measured: {spec.workload.name} on {gpu.name}, {settings}"
    grid = [cell.batch_size for cell in frontier.rows[0].cells]
    rows = [(unit, *_HEADINGS, *(f"at {size}" for size in grid))]
    rows += [_cells(row, frontier.unit, grid) for row in frontier.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [
        "",
        title,
        "",
        *table,
        "",
        f"Memory in GiB by batch size; of {format_bytes(frontier.limit_bytes)} for the training; x: does not fit.",
        frontier.text,
        f"No speed is known: measure the lengths you use with {PROGRAM} {spec.model}. Took {frontier.seconds:.1f} s.",
    ]


def _cells(row: Row, unit: str, grid: Sequence[int]) -> tuple[str, ...]:
    memory = {cell.batch_size: f"{cell.memory_bytes / 2**30:.1f}{'' if cell.fits else ' x'}" for cell in row.cells}
    sizes = (str(row.largest_batch_size or "none"), str(row.safe_batch_size or "none"))
    return (str(row.input_size), *sizes, f"{row.units_at_safe:,} {unit}", *(memory[size] for size in grid))
