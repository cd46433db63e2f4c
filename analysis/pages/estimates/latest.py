"""The latest estimates: what fits where, from the columns of runs and the cells of the matrix that they filled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.models import MatrixCell, Run
from analysis.presentation.formatting import bytes_text
from analysis.presentation.run_rows import HistoryRow, history_rows
from analysis.runs.columns.matrix_cells import ESTIMATED


@dataclass(frozen=True, slots=True)
class LatestEstimate:
    """A row. `smallest` is the cell with the least memory that fits today's batch size, where the matrix has it."""

    row: HistoryRow
    smallest: MatrixCell | None = None

    @property
    def batch_size(self) -> int | None:
        size: int | None = self.row.run.spec.get("current_batch_size")
        return size

    @property
    def fits(self) -> str:
        """Write "9 of 34 GPUs", or of one GPU whether; empty before there is an answer."""
        run = self.row.run
        if self.row.cards:
            return self.row.cards
        if run.estimated_safe_batch_size is None or self.batch_size is None:
            return ""
        return (
            f"{self.row.device_name}: {'fits' if run.estimated_safe_batch_size >= self.batch_size else 'does not fit'}"
        )

    @property
    def smallest_text(self) -> str:
        return f"{self.smallest.card_name}, {bytes_text(self.smallest.memory_bytes)}" if self.smallest else ""

    @property
    def size(self) -> int | None:
        return self.smallest.shown_batch_size if self.smallest else self.row.run.estimated_safe_batch_size


def latest_estimates(runs: Sequence[Run]) -> list[LatestEstimate]:
    """Return the rows, with one further statement for all of them."""
    ids = [run.pk for run in runs if run.estimated_cards_that_fit]
    smallest = _smallest(MatrixCell.objects.filter(run__in=ids, kind=ESTIMATED), {run.pk: run for run in runs})
    return [LatestEstimate(row, smallest.get(row.run.pk)) for row in history_rows(runs, {})]


def _smallest(cells: Iterable[MatrixCell], runs: dict[int, Run]) -> dict[int, MatrixCell]:
    found: dict[int, list[MatrixCell]] = defaultdict(list)
    for cell in cells:
        if (cell.shown_batch_size or 0) >= (runs[cell.run_id].spec.get("current_batch_size") or 1):
            found[cell.run_id].append(cell)
    return {run_id: min(fitting, key=lambda cell: (cell.memory_bytes, cell.card)) for run_id, fitting in found.items()}
