"""PURE: which cards are marked: the fastest and cheapest measured ones, and the lowest price that fits a batch size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.results.stats import NOISE_FRACTION

if TYPE_CHECKING:
    from analysis.lists.matrix.table import ShownCell, WorkloadRow


def fastest(samples_per_second: Mapping[str, float | None]) -> set[str]:
    """Find the cards with the highest speed, or within the noise of it; empty unless there are two to compare."""
    known = _compared(samples_per_second)
    return {card for card, speed in known.items() if speed >= max(known.values()) * (1 - NOISE_FRACTION)}


def cheapest(costs_usd: Mapping[str, float | None]) -> set[str]:
    """Find the cards with the lowest cost, or within the noise of it; empty unless there are two to compare."""
    known = _compared(costs_usd)
    return {card for card, cost in known.items() if cost <= min(known.values()) * (1 + NOISE_FRACTION)}


def _compared(figures: Mapping[str, float | None]) -> dict[str, float]:
    known = {card: figure for card, figure in figures.items() if figure is not None}
    return known if len(known) > 1 else {}


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
