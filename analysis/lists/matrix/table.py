"""GPU x model as a table: its rows, its cards and what each cell shows, for the page and the API."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analysis.formatting import bytes_text, round_bytes, round_percent
from analysis.lists.matrix.query import MatrixForm
from analysis.models import Device, MatrixCell
from analysis.presentation.labels import (
    describe_input,
    describe_settings,
    describe_several,
    model_name,
    short_device_name,
)
from analysis.presentation.origin import Origin
from analysis.runs.columns.matrix_cells import ESTIMATED, MEASURED
from analysis.runs.gpu_catalog import Price, gpu_of
from engine.errors import SpecError
from engine.estimate.gpus import gpus
from engine.estimate.predict import check
from engine.facts.savings import cost_per_million_samples_usd
from engine.facts.stats import NOISE_FRACTION
from engine.settings.catalog import WORKLOADS
from engine.settings.spec import RunSpec

HEATS = 4
FASTEST, CHEAPEST = ("▲", "fastest"), ("$", "cheapest a million samples")
LOWEST_PRICE = ("✓", "lowest price an hour that fits today’s batch size")
Cells = Mapping[str, Mapping[str, MatrixCell]]
"""Card -> kind -> cell, of one workload."""


@dataclass(frozen=True, slots=True)
class CardColumn:
    """A column. `price` is None where unknown; `is_here`: a device of this portal is such a card."""

    key: str
    name: str
    memory_bytes: int
    price: Price | None
    is_here: bool
    is_cpu: bool = False
    limit_count: int = 1

    @property
    def short_name(self) -> str:
        return re.sub(r" \d+-Core Processor$", "", self.name.partition(" limited to ")[0]) if self.is_cpu else self.name

    @property
    def memory(self) -> str:
        if self.limit_count > 1:
            return f"{self.limit_count} limits"
        return f"limit {round_bytes(self.memory_bytes)}" if self.is_cpu else bytes_text(self.memory_bytes)

    @property
    def label(self) -> str:
        return f"{self.short_name}, {self.memory}" if self.is_cpu else self.name


@dataclass(frozen=True, slots=True)
class ShownCell:
    """One cell of the table. Without a stored `cell` it shows why there cannot be one, or offers an estimate."""

    card: CardColumn
    cell: MatrixCell | None
    cost_usd: float | None = None
    is_fastest: bool = False
    is_cheapest: bool = False
    is_cheapest_that_fits: bool = False
    refusal: str = ""
    estimate_query: str = ""
    heat: int = 0
    """From 1 to `HEATS`, by the share of the row's largest size; 0 without a size."""

    @property
    def size(self) -> int:
        return (self.cell.shown_batch_size or 0) if self.cell else 0

    @property
    def marks(self) -> list[tuple[str, str]]:
        """Return the sign and the words of what the cell is best in."""
        known = ((self.is_fastest, FASTEST), (self.is_cheapest, CHEAPEST), (self.is_cheapest_that_fits, LOWEST_PRICE))
        return [mark for is_best, mark in known if is_best]

    @property
    def css_class(self) -> str:
        return f"is-{self.cell.kind}" if self.cell else "is-empty"

    @property
    def origin(self) -> Origin | None:
        return Origin.of(self.cell.run) if self.cell else None


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    model: str
    name: str
    input: str
    parameter_count: int
    cells: tuple[ShownCell, ...]


def matrix_table(
    form: MatrixForm, cells: Iterable[MatrixCell], devices: Iterable[Device], prices: Mapping[str, Price]
) -> dict[str, Any]:
    by_workload: dict[tuple[str, int], dict[str, dict[str, MatrixCell]]] = defaultdict(lambda: defaultdict(dict))
    for cell in cells:
        if cell.model in WORKLOADS:
            by_workload[cell.model, cell.input_size][cell.card][cell.kind] = cell
    cards = _cards(form, by_workload.values(), devices, prices)
    order = list(WORKLOADS)
    workloads = sorted(by_workload, key=lambda workload: (order.index(workload[0]), workload[1]))
    rows = [_row(form, model, size, by_workload[model, size], cards) for model, size in workloads]
    shown = [cell for row in rows for cell in row.cells]
    known = {row.model for row in rows}
    spec = {"model": "", **form.settings}
    return {
        "form": form,
        "settings": describe_settings(spec),
        "rows": [row for row in rows if any(cell.cell for cell in row.cells)],
        "cards": cards,
        "with_figures": [(model, model_name(model)) for model in order if model in known],
        "without_figures": [(model, model_name(model)) for model in order if model not in known],
        "measured_count": sum(cell.css_class == "is-measured" for cell in shown),
        "estimated_count": sum(cell.css_class == "is-estimated" for cell in shown),
        "noise": round_percent(NOISE_FRACTION),
        "hidden_count": len({card for of in by_workload.values() for card in of} - {card.key for card in cards}),
        "other_cards": form.address(cards="usual" if form.shows_all_cards else "all"),
    }


def _cards(
    form: MatrixForm, workloads: Iterable[Cells], devices: Iterable[Device], prices: Mapping[str, Price]
) -> list[CardColumn]:
    """Return the cards: first the lab's and measured ones, then those with a price, then the rest; GPUs before CPUs."""
    here: dict[str, tuple[str, int]] = {}
    for device in devices:
        gpu = gpu_of(device)
        here[gpu.id if gpu else device.name] = (device.name, device.capacity_bytes)
    found = {gpu.id: (gpu.name, gpu.total_bytes, False) for gpu in gpus().values()}
    wanted = set(found) if form.shows_all_cards else {card for card in found if card in prices or card in here}
    for key, (name, capacity_bytes) in here.items():
        found.setdefault(key, (name, capacity_bytes, False))
        wanted.add(key)
    measured = [kinds[MEASURED] for cells in workloads for kinds in cells.values() if MEASURED in kinds]
    for cell in measured:
        found.setdefault(cell.card, (cell.card if cell.is_cpu else cell.card_name, cell.memory_bytes, cell.is_cpu))
        wanted.add(cell.card)
    cards = [
        CardColumn(key, short_device_name(name), size, prices.get(key), key in here, is_cpu)
        for key, (name, size, is_cpu) in found.items()
        if key in wanted
    ]
    if (ranks := int(form.settings.get("ranks") or 1)) > 1:
        cards = [
            replace(card, name=f"{ranks} ranks on {card.name}")
            if card.is_cpu
            else replace(card, name=describe_several(card.name, ranks), price=card.price and card.price.times(ranks))
            for card in cards
        ]
    proven = {cell.card for cell in measured}
    own = {*proven, *here}
    return sorted(
        cards,
        key=lambda card: (card.key not in own, card.price is None, card.is_cpu, card.memory_bytes, card.name),
    )


def _row(form: MatrixForm, model: str, input_size: int, cells: Cells, cards: Sequence[CardColumn]) -> WorkloadRow:
    kinds_of = {card.key: cells.get(card.key, {}) for card in cards}
    best = {key: kinds.get(MEASURED) or kinds.get(ESTIMATED) for key, kinds in kinds_of.items()}
    speeds = {key: cell.samples_per_second if cell else None for key, cell in best.items()}
    costs = {
        card.key: cost_per_million_samples_usd(card.price.per_hour_usd if card.price else None, speeds[card.key])
        for card in cards
    }
    rivals = {card.key for card in cards if not card.is_cpu}
    quick, cheap = (mark({key: of[key] for key in rivals}) for mark, of in ((fastest, speeds), (cheapest, costs)))
    spec = {"model": model, WORKLOADS[model].input_field: input_size}
    return WorkloadRow(
        model=model,
        name=model_name(model),
        input=describe_input(spec),
        parameter_count=WORKLOADS[model].parameter_count,
        cells=_with_heat(
            ShownCell(card, cell, costs[card.key], card.key in quick, card.key in cheap)
            if (cell := best[card.key])
            else _empty(form, model, input_size, card)
            for card in cards
        ),
    )


def _with_heat(cells: Iterable[ShownCell]) -> tuple[ShownCell, ...]:
    shown = list(cells)
    most = max((cell.size for cell in shown), default=0)
    return tuple(replace(cell, heat=math.ceil(HEATS * cell.size / most)) if cell.size else cell for cell in shown)


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


def _empty(form: MatrixForm, model: str, input_size: int, card: CardColumn) -> ShownCell:
    if card.key not in gpus():
        return ShownCell(card, None)
    settings = {name: form.settings[name] for name in ("precision", "optimizer", "mode")}
    try:
        check(RunSpec(model=model, **settings), gpus()[card.key])
    except SpecError as error:
        return ShownCell(card, None, refusal=error.reason)
    return ShownCell(card, None, estimate_query=form.estimate_query(model, card.key, input_size))


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
