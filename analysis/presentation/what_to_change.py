"""What to change, as a page shows it: the smallest changes first, and a table and a picture of all that was tried.

Memory and batch sizes are estimated. A gain is shown only where both trainings were measured, and on the same kind of
device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.presentation.charts.axes import batch_axis, bytes_axis
from analysis.presentation.charts.plots import Plot, PlotPoint, PointLabel, ReferenceLine, SeriesStyle, Table, Trace
from analysis.presentation.formatting import bytes_text, round_bytes
from engine.estimate.alternatives import ORDER
from engine.estimate.what_to_change import Variant, WhatToChange

if TYPE_CHECKING:
    from analysis.runs.what_to_change import Measured

ADVICE_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One variant. `gain` is what was measured of it against the request; empty where not both were."""

    label: str
    costs: str
    largest: int | None
    safe: int | None
    memory_bytes: int
    fit: str
    is_safe: bool
    gain: str
    run_id: int | None
    is_requested: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """The whole part of a page."""

    title: str
    advice: tuple[ChangeRow, ...]
    order: str
    rows: tuple[ChangeRow, ...]
    left_out: tuple[tuple[str, str], ...]
    batch_size: int
    limit_bytes: int
    device_name: str


def changes_shown(found: WhatToChange, measured: Mapping[str, Measured]) -> Changes:
    """Return what the page shows."""
    base = measured.get(found.requested.label)
    rows = {variant.label: _row(variant, measured.get(variant.label), base) for variant in found.variants}
    return Changes(
        title=_title(found),
        advice=tuple(rows[label] for label in found.advice[:ADVICE_SHOWN]),
        order=ORDER,
        rows=tuple(rows.values()),
        left_out=tuple((each.label, each.reason) for each in found.left_out),
        batch_size=found.batch_size,
        limit_bytes=found.limit_bytes,
        device_name=next((each.device_name for each in measured.values()), ""),
    )


def _title(found: WhatToChange) -> str:
    size = f"batch {found.batch_size:,}"
    if found.requested.is_safe:
        return f"Nothing to change: {size} would fit"
    if not found.advice:
        return f"No change that was tried makes {size} fit"
    return f"What to change so that {size} fits"


def _row(variant: Variant, measured: Measured | None, base: Measured | None) -> ChangeRow:
    return ChangeRow(
        label=variant.label,
        costs="; ".join(variant.costs),
        largest=variant.largest_batch_size or None,
        safe=variant.safe_batch_size or None,
        memory_bytes=variant.memory_bytes,
        fit="✓ would fit" if variant.is_safe else "▲ only without the margin" if variant.fits else "✕ would not",
        is_safe=variant.is_safe,
        gain=describe_gain(measured, base),
        run_id=measured.run_id if measured else None,
        is_requested=not variant.order,
    )


def describe_gain(measured: Measured | None, base: Measured | None) -> str:
    """Write "1.9x the batch, 2.4x the speed [2.3, 2.5]"; empty where not both were measured.

    The interval reaches from the lowest to the highest ratio that the two intervals of speed allow.
    """
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
    """Draw each variant by the memory at the wanted size and its safe batch size; the line joins the best ones.

    None where only the request itself was estimated, or not one sample fits.
    """
    whole = [variant for variant in found.variants if variant.micro_batch_size is None and variant.safe_batch_size]
    front = _front(whole)
    if len(whole) < 2:
        return None
    dots = tuple(
        PlotPoint(each.safe_batch_size, each.memory_bytes, f"{each.label}: {bytes_text(each.memory_bytes)}")
        for each in whole
    )
    named = sorted(whole, key=lambda each: (each not in front, bool(each.order)))
    return Plot(
        key="changes",
        title=f"Memory at batch {found.batch_size:,} and the largest safe batch",
        sentence=_sentence(found, front),
        x=batch_axis([each.safe_batch_size for each in whole], is_log=True),
        y=bytes_axis([found.limit_bytes, *(dot.y for dot in dots)], is_log=False, title="estimated peak memory"),
        traces=(Trace("Settings", SeriesStyle.of(0), dots, has_line=False, is_estimate=True),),
        table=_table(found),
        levels=(ReferenceLine(found.limit_bytes, f"limit {round_bytes(found.limit_bytes)}"),),
        labels=tuple(PointLabel(each.safe_batch_size, each.memory_bytes, each.label) for each in named[:8]),
        front=tuple((float(each.safe_batch_size), float(each.memory_bytes)) for each in front),
    )


def _front(variants: list[Variant]) -> list[Variant]:
    """Return the variants that no other beats in both: a larger safe batch and less memory at the wanted size."""
    best: list[Variant] = []
    for each in sorted(variants, key=lambda v: (v.memory_bytes, -v.safe_batch_size)):
        if not best or each.safe_batch_size > best[-1].safe_batch_size:
            best.append(each)
    return best


def _sentence(found: WhatToChange, front: list[Variant]) -> str:
    names = ", ".join(each.label for each in front)
    return f"Of {len(found.variants)} variants none has both less memory and a larger safe batch than: {names}."


def _table(found: WhatToChange) -> Table:
    rows = tuple(
        (each.label, str(each.largest_batch_size or "none"), str(each.safe_batch_size or "none"))
        + (bytes_text(each.memory_bytes), "yes" if each.is_safe else "no")
        for each in found.variants
    )
    head = ("Settings", "Largest batch", "Safe batch", f"Memory at batch {found.batch_size:,}", "Fits with the margin")
    return Table(head, rows, numbers=frozenset((1, 2, 3)))
