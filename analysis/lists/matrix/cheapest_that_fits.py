"""PURE: which card that fits a batch size with the reserve has the lowest price an hour: an estimate knows no speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.lists.matrix.table import ShownCell, WorkloadRow


def mark_cheapest_that_fits(rows: Sequence[WorkloadRow], batch_size: int) -> list[WorkloadRow]:
    return [replace(row, cells=_marked(row.cells, batch_size)) for row in rows]


def _marked(cells: Sequence[ShownCell], batch_size: int) -> tuple[ShownCell, ...]:
    prices = {place: cell.card.price.per_hour_usd for place, cell in enumerate(cells) if cell.cell and cell.card.price}
    enough = {place: price for place, price in prices.items() if _size(cells[place]) >= batch_size}
    lowest = min(enough.values(), default=None) if len(prices) > 1 else None
    return tuple(
        replace(cell, is_cheapest_that_fits=lowest is not None and enough.get(place) == lowest)
        for place, cell in enumerate(cells)
    )


def _size(shown: ShownCell) -> int:
    return (shown.cell.shown_batch_size or 0) if shown.cell else 0
