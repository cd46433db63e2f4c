"""What would fit, as a page shows it: the smallest changes first, with a picture of all; and length x batch.

Memory and batch sizes are estimated. A gain is shown only where both trainings were measured, and on the same kind of
device; a speed where the same training was measured at that length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from analysis.charts.axes import batch_axis, bytes_axis
from analysis.charts.plots import (
    Plot,
    PlotPoint,
    PointLabel,
    ReferenceLine,
    SeriesStyle,
    Table,
    Trace,
    pareto_front,
    table_of,
)
from analysis.formatting import bytes_text, rate, rate_range, round_bytes
from analysis.presentation.estimate_summary import size_text
from analysis.presentation.labels import describe_precision
from analysis.runs.earlier.what_to_change import Measured
from engine.estimate.alternatives import ORDER
from engine.estimate.frontier import Frontier, FrontierRow
from engine.estimate.what_to_change import Variant, WhatToChange
from engine.settings.spec import SETTINGS
from engine.text.units import GIB, MIB

ADVICE_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One variant, with what was measured of it: `gain` is against the request, and empty where not both were."""

    variant: Variant
    gain: str
    run_id: int | None

    @property
    def text(self) -> str:
        return variant_text(self.variant)

    @property
    def fit(self) -> str:
        if self.variant.is_safe:
            return "✓ would fit"
        return "▲ only without the margin" if self.variant.fits else "✕ would not"


def changes_shown(found: WhatToChange, measured: Mapping[str, Measured]) -> dict[str, Any]:
    base, size = measured.get(found.requested.label), f"batch {found.batch_size:,}"
    title = f"What to change so that {size} fits" if found.advice else f"No change that was tried makes {size} fit"
    runs = ((variant, measured.get(variant.label)) for variant in found.variants)
    rows = {each.label: ChangeRow(each, describe_gain(run, base), run.run_id if run else None) for each, run in runs}
    return {
        "title": f"Nothing to change: {size} would fit" if found.requested.is_safe else title,
        "found": found,
        "advice": [rows[label] for label in found.advice[:ADVICE_SHOWN]],
        # these fit too and are no advice, because the advice changes the training less
        "beyond": [rows[label].text for label in found.advice[ADVICE_SHOWN:]],
        "order": ORDER,
        "rows": list(rows.values()),
        "device_name": next((each.device_name for each in measured.values()), ""),
    }


def variant_text(variant: Variant) -> str:
    """Write "Optimizer: AdamW, 8-bit state + 4 micro-batches of 16": the settings as the form names them."""
    parts = [_setting_text(name, value) for name, value in variant.settings.items()]
    if variant.micro_batch_size is not None:
        parts.append(variant.label.rpartition(" + ")[2])
    return " + ".join(parts) or "As requested"


def _setting_text(name: str, value: object) -> str:
    each = SETTINGS.get(name)
    if each is None:  # of an older version
        return f"{name} {value}"
    if value is True:
        return each.label
    shown = (each.choices or {}).get(str(value), f"{value:,}" if isinstance(value, int) else str(value))
    return f"{each.label}: {describe_precision({name: value}) if name == 'precision' else shown}"


def describe_gain(measured: Measured | None, base: Measured | None) -> str:
    """Write "1.9x the batch, 2.4x the speed [2.3, 2.5]", the extreme ratios of both; empty if one is not measured."""
    if measured is None or base is None or measured.run_id == base.run_id:
        return ""
    batch = f"{measured.largest_batch_size / base.largest_batch_size:.1f}x the batch"
    if measured.samples_per_second is None or base.samples_per_second is None:
        return f"{batch}; the speed was not measurable"
    low, value, high = measured.samples_per_second
    base_low, base_value, base_high = base.samples_per_second
    lowest, highest = low / base_high, high / base_low
    interval = f"[{lowest:.2f}, {highest:.2f}]"
    if lowest <= 1 <= highest:
        return f"{batch}, the same speed {interval}"
    return f"{batch}, {value / base_value:.2f}x the speed {interval}"


def changes_plot(found: WhatToChange) -> Plot | None:
    """Draw variants by memory at the wanted size and largest batch, the best ones joined; None without a variant."""
    whole = [variant for variant in found.variants if variant.micro_batch_size is None and variant.safe_batch_size]
    places: list[tuple[float, float]] = [(each.memory_bytes, each.safe_batch_size) for each in whole]
    front = [whole[places.index(place)] for place in pareto_front(places)]
    if len(whole) < 2:
        return None
    dots = tuple(
        PlotPoint(each.safe_batch_size, each.memory_bytes, f"{variant_text(each)}: {bytes_text(each.memory_bytes)}")
        for each in whole
    )
    named = sorted(whole, key=lambda each: (each not in front, bool(each.order)))
    best = ", ".join(map(variant_text, front))
    return Plot(
        key="changes",
        title=f"Memory at batch {found.batch_size:,} and the largest batch with the margin",
        sentence=f"Of {len(found.variants)} variants none has both less memory and a larger batch than: {best}.",
        x=batch_axis([each.safe_batch_size for each in whole], is_log=True),
        y=bytes_axis([found.limit_bytes, *(dot.y for dot in dots)], is_log=False, title="estimated peak memory"),
        traces=(Trace("Settings", SeriesStyle.of(0), dots, has_line=False, is_predicted=True),),
        table=_table(found),
        levels=(ReferenceLine(found.limit_bytes, f"limit {round_bytes(found.limit_bytes)}"),),
        labels=tuple(PointLabel(each.safe_batch_size, each.memory_bytes, variant_text(each)) for each in named[:8]),
        front=tuple((float(each.safe_batch_size), float(each.memory_bytes)) for each in front),
    )


def _size(size: int) -> str:
    return f"{size:,}" if size else "none"


def _table(found: WhatToChange) -> Table:
    rows = tuple(
        (variant_text(each), _size(each.largest_batch_size), _size(each.safe_batch_size))
        + (bytes_text(each.memory_bytes), "yes" if each.is_safe else "no")
        for each in found.variants
    )
    head = ("Settings", "Largest batch", "With margin", f"Memory at batch {found.batch_size:,}", "Fits with the margin")
    return Table(head, rows, numbers=frozenset((1, 2, 3)))


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
    cells = [f"{cell.memory_bytes / unit_bytes:,.{decimals}f}{'' if cell.fits else ' ✕'}" for cell in row.cells]
    return {
        "of": row,
        "largest": size_text(row, row.largest_batch_size),
        "safe": size_text(row, row.safe_batch_size),
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
    largest = _trace("Largest", "line-allocated", unit, {row.input_size: row.largest_batch_size for row in rows})
    safe = _trace("With margin", "line-estimated", unit, {row.input_size: row.safe_batch_size for row in rows})
    first, last = rows[0], rows[-1]
    return Plot(
        key="frontier",
        title=f"Batch size by {heading.lower()}",
        sentence=f"With the margin, the largest batch goes from {first.safe_batch_size:,} at {first.input_size:,} "
        f"{unit} to {last.safe_batch_size:,} at {last.input_size:,}.",
        x=replace(batch_axis([row.input_size for row in rows], is_log=True), title=f"{unit} (log scale)"),
        y=batch_axis(sizes, is_log=True),
        traces=(largest, safe),
        table=table_of((largest, safe), heading, lambda batch: f"{batch:,}"),
    )


def _trace(name: str, css_class: str, unit: str, batch_of: Mapping[int, int]) -> Trace:
    dots = tuple(
        PlotPoint(size, batch, f"{size:,} {unit}: {batch:,}, {name.lower()}") for size, batch in batch_of.items()
    )
    return Trace(name, SeriesStyle(css_class), dots, is_predicted=True)
