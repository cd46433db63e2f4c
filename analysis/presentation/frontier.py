"""Length x batch, as a page shows it: the largest batch at each length, the memory by batch size, and a budget.

All is estimated except speed, which is shown where the same training was measured at that length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from analysis.presentation.charts.axes import batch_axis
from analysis.presentation.charts.plots import Plot, PlotPoint, SeriesStyle, Table, Trace
from analysis.presentation.estimate_summary import describe_size
from analysis.presentation.formatting import rate, rate_range
from analysis.runs.earlier.what_to_change import Measured
from engine.estimate.frontier import Frontier, FrontierRow
from engine.text.units import GIB, MIB

_IN_MIB_BELOW_BYTES = 4 * GIB
_HEADINGS = {"tokens": "Length", "pixels": "Image size"}


def frontier_shown(made: Frontier, measured: Mapping[int, Measured]) -> dict[str, Any]:
    heading, memory_unit = _HEADINGS[made.unit], "MiB" if made.limit_bytes < _IN_MIB_BELOW_BYTES else "GiB"
    return {
        "title": f"What fits at each {heading.lower()}",
        "made": made,
        "heading": heading,
        "grid": [cell.batch_size for cell in made.rows[0].cells],
        "rows": [_size_row(row, measured.get(row.input_size), memory_unit) for row in made.rows],
        "memory_unit": memory_unit,
        "device_name": next((each.device_name for each in measured.values()), ""),
    }


def _size_row(row: FrontierRow, measured: Measured | None, memory_unit: str) -> dict[str, Any]:
    unit_bytes, decimals = (MIB, 0) if memory_unit == "MiB" else (GIB, 1)
    speed = ""  # the measured tokens or pixels a second, with the interval: "15,000 [14,800 to 15,200]"
    if measured is not None and measured.samples_per_second is not None:
        low, value, high = (each * row.units_per_sample for each in measured.samples_per_second)
        speed = f"{rate(value)} [{rate_range(low, high)}]"
    largest, safe = (
        describe_size(size, row.limits, row.largest_batch_size)
        for size in (row.largest_batch_size, row.safe_batch_size)
    )
    cells = [f"{cell.memory_bytes / unit_bytes:,.{decimals}f}{'' if cell.fits else ' ✕'}" for cell in row.cells]
    return {
        "of": row,
        "largest": largest,
        "safe": safe,
        "cells": cells,
        "speed": speed,
        "run_id": measured.run_id if measured else None,
    }


def frontier_plot(made: Frontier) -> Plot | None:
    rows, heading = [row for row in made.rows if row.safe_batch_size], _HEADINGS[made.unit]
    if len(rows) < 2:
        return None
    unit = "tokens" if made.unit == "tokens" else "pixels a side"
    sizes = [size for row in rows for size in (row.safe_batch_size, row.largest_batch_size)]
    largest = _trace("Largest", "line-allocated", unit, [(row.input_size, row.largest_batch_size) for row in rows])
    safe = _trace("With margin", "line-estimated", unit, [(row.input_size, row.safe_batch_size) for row in rows])
    first, last = rows[0], rows[-1]
    lines = tuple((f"{row.input_size:,}", f"{row.largest_batch_size:,}", f"{row.safe_batch_size:,}") for row in rows)
    return Plot(
        key="frontier",
        title=f"Batch size by {heading.lower()}",
        sentence=f"With the margin, the largest batch goes from {first.safe_batch_size:,} at {first.input_size:,} "
        f"{unit} to {last.safe_batch_size:,} at {last.input_size:,}.",
        x=replace(batch_axis([row.input_size for row in rows], is_log=True), title=f"{unit} (log scale)"),
        y=batch_axis(sizes, is_log=True),
        traces=(largest, safe),
        table=Table((heading, "Largest batch", "With margin"), lines, numbers=frozenset((1, 2))),
    )


def _trace(name: str, css_class: str, unit: str, points: list[tuple[int, int]]) -> Trace:
    dots = tuple(PlotPoint(size, batch, f"{size:,} {unit}: {batch:,}, {name.lower()}") for size, batch in points)
    return Trace(name, SeriesStyle(css_class), dots, is_predicted=True)
