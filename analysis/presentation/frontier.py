"""Length x batch, as a page shows it: the largest batch at each length, the memory by batch size, and a budget.

All of it is estimated, but for a speed, which is shown where the same training was measured at that length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.presentation.charts.axes import batch_axis
from analysis.presentation.charts.plots import Plot, PlotPoint, SeriesStyle, Table, Trace
from analysis.presentation.formatting import rate, rate_range
from engine.estimate.frontier import Cell, Row
from engine.from_json import from_json
from engine.units import GIB, MIB

if TYPE_CHECKING:
    from analysis.runs.what_to_change import Measured

_IN_MIB_BELOW_BYTES = 4 * GIB
_HEADINGS = {"tokens": "Length", "pixels": "Image size"}


@dataclass(frozen=True, slots=True)
class SizeRow:
    """One length or image size. `speed` is what was measured, with its interval; empty where it was not."""

    size: int
    largest: int | None
    safe: int | None
    units: int
    cells: tuple[str, ...]
    speed: str
    run_id: int | None


@dataclass(frozen=True, slots=True)
class FrontierShown:
    """The whole part of a page. `unit` is tokens or pixels; `heading` names what the rows are."""

    title: str
    text: str
    unit: str
    heading: str
    grid: tuple[int, ...]
    rows: tuple[SizeRow, ...]
    limit_bytes: int
    memory_unit: str
    device_name: str


def frontier_shown(stored: Mapping[str, Any], measured: Mapping[int, Measured]) -> FrontierShown:
    """Return what the page shows of the stored `frontier` of a result."""
    rows, heading = _rows(stored), _HEADINGS[stored["unit"]]
    memory_unit = "MiB" if stored["limit_bytes"] < _IN_MIB_BELOW_BYTES else "GiB"
    return FrontierShown(
        title=f"{heading} x batch",
        text=stored["text"],
        unit=stored["unit"],
        heading=heading,
        grid=tuple(cell.batch_size for cell in rows[0].cells),
        rows=tuple(_size_row(row, measured.get(row.input_size), memory_unit) for row in rows),
        limit_bytes=stored["limit_bytes"],
        memory_unit=memory_unit,
        device_name=next((each.device_name for each in measured.values()), ""),
    )


def _rows(stored: Mapping[str, Any]) -> list[Row]:
    return [from_json(Row, row) for row in stored["rows"]]


def _size_row(row: Row, measured: Measured | None, memory_unit: str) -> SizeRow:
    return SizeRow(
        size=row.input_size,
        largest=row.largest_batch_size or None,
        safe=row.safe_batch_size or None,
        units=row.units_at_safe,
        cells=tuple(_cell(cell, memory_unit) for cell in row.cells),
        speed=_speed(row, measured),
        run_id=measured.run_id if measured else None,
    )


def _cell(cell: Cell, memory_unit: str) -> str:
    memory = f"{cell.memory_bytes / MIB:,.0f}" if memory_unit == "MiB" else f"{cell.memory_bytes / GIB:,.1f}"
    return f"{memory}{'' if cell.fits else ' ✕'}"


def _speed(row: Row, measured: Measured | None) -> str:
    """Write "15,000 [14,800 to 15,200]": the measured tokens or pixels a second."""
    if measured is None or measured.samples_per_second is None:
        return ""
    low, value, high = (each * row.units_per_sample for each in measured.samples_per_second)
    return f"{rate(value)} [{rate_range(low, high)}]"


def frontier_plot(stored: Mapping[str, Any]) -> Plot | None:
    """Draw the largest and the safe batch size by length; None where fewer than two lengths have a safe one."""
    rows, heading = [row for row in _rows(stored) if row.safe_batch_size], _HEADINGS[stored["unit"]]
    if len(rows) < 2:
        return None
    unit = "tokens" if stored["unit"] == "tokens" else "pixels a side"
    sizes = [size for row in rows for size in (row.safe_batch_size, row.largest_batch_size)]
    largest = _trace(
        "Largest", SeriesStyle("line-allocated"), unit, [(r.input_size, r.largest_batch_size) for r in rows]
    )
    safe = _trace("Safe", SeriesStyle("line-memory"), unit, [(r.input_size, r.safe_batch_size) for r in rows])
    first, last = rows[0], rows[-1]
    return Plot(
        key="frontier",
        title=f"Batch size by {heading.lower()}",
        sentence=f"The safe batch size goes from {first.safe_batch_size:,} at {first.input_size:,} {unit} to "
        f"{last.safe_batch_size:,} at {last.input_size:,}.",
        x=replace(batch_axis([row.input_size for row in rows], is_log=True), title=f"{unit} (log scale)"),
        y=batch_axis(sizes, is_log=True),
        traces=(largest, safe),
        table=_table(rows, heading),
    )


def _trace(name: str, style: SeriesStyle, unit: str, points: list[tuple[int, int]]) -> Trace:
    dots = tuple(PlotPoint(size, batch, f"{size:,} {unit}: {name.lower()} batch {batch:,}") for size, batch in points)
    return Trace(f"{name} batch size", style, dots, is_estimate=True)


def _table(rows: list[Row], heading: str) -> Table:
    lines = tuple((f"{row.input_size:,}", f"{row.largest_batch_size:,}", f"{row.safe_batch_size:,}") for row in rows)
    return Table((heading, "Largest batch", "Safe batch"), lines, numbers=frozenset((1, 2)))
