"""PURE: what the page of the matrix adds: the lowest price that fits a batch size, and one column for each CPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from analysis.lists.matrix.table import CardColumn, ShownCell, WorkloadRow


def mark_cheapest_that_fits(rows: Sequence[WorkloadRow], batch_size: int) -> list[WorkloadRow]:
    """Mark the card with the lowest price an hour that fits the size with the reserve: an estimate knows no speed."""
    return [replace(row, cells=_marked(row.cells, batch_size)) for row in rows]


def _marked(cells: Sequence[ShownCell], batch_size: int) -> tuple[ShownCell, ...]:
    prices = {place: cell.card.price.per_hour_usd for place, cell in enumerate(cells) if cell.cell and cell.card.price}
    enough = {place: price for place, price in prices.items() if cells[place].size >= batch_size}
    lowest = min(enough.values(), default=None) if len(prices) > 1 else None
    return tuple(
        replace(cell, is_cheapest_that_fits=lowest is not None and enough.get(place) == lowest)
        for place, cell in enumerate(cells)
    )


def join_limits(cards: Sequence[CardColumn], rows: Sequence[WorkloadRow]) -> tuple[list[CardColumn], list[WorkloadRow]]:
    """Join the columns of each CPU into one, with the cells of its largest memory limit that has any."""
    places: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for place, card in enumerate(cards):
        places[(card.short_name if card.is_cpu else card.key, card.is_cpu)].append(place)
    columns = [
        replace(max((cards[place] for place in group), key=lambda card: card.memory_bytes), limit_count=len(group))
        for group in places.values()
    ]
    joined = [
        replace(row, cells=tuple(_largest([row.cells[place] for place in group]) for group in places.values()))
        for row in rows
    ]
    return columns, joined


def _largest(cells: Sequence[ShownCell]) -> ShownCell:
    return max(cells, key=lambda shown: (shown.cell is not None, shown.card.memory_bytes))
