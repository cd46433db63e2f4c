"""PURE: the columns of a CPU that was measured with several memory limits, as one: its cells name their limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from analysis.lists.matrix.table import CardColumn, ShownCell, WorkloadRow


def join_limits(cards: Sequence[CardColumn], rows: Sequence[WorkloadRow]) -> tuple[list[CardColumn], list[WorkloadRow]]:
    """Join the columns of each CPU into one, whose cells are those of the largest memory limit that has any."""
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
