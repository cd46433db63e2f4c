"""The lines that `estimate --what-to-change` prints: the smallest changes that fit, and all that was tried."""

from __future__ import annotations

from ..estimate.alternatives import ORDER
from ..estimate.what_to_change import Variant, WhatToChange
from ..units import format_bytes

_HEADINGS = ("settings", "largest", "safe", "memory at the wanted batch", "")
ADVICE_SHOWN = 5


def change_lines(found: WhatToChange) -> list[str]:
    """Return the advice, then the table of everything that was estimated, then what was left out."""
    return ["", *_advice(found), "", *_table(found), *_left_out(found), ""]


def _advice(found: WhatToChange) -> list[str]:
    batch, limit = f"batch {found.batch_size:,}", format_bytes(found.limit_bytes)
    if found.requested.is_safe:
        return [f"WHAT TO CHANGE, estimated: nothing, {batch} would fit into {limit} with the margin."]
    if not found.advice:
        return [f"WHAT TO CHANGE, estimated: nothing that was tried makes {batch} fit into {limit} with the margin."]
    title = f"WHAT TO CHANGE so that {batch} fits into {limit}, estimated, the smallest change first:"
    shown = found.advised[:ADVICE_SHOWN]
    rows = [f"  {number}. {each.label}: {describe_costs(each)}" for number, each in enumerate(shown, start=1)]
    return [title, *rows, f"  {ORDER} Speed is not estimated: measure it."]


def describe_costs(variant: Variant) -> str:
    return "; ".join(variant.costs)


def _table(found: WhatToChange) -> list[str]:
    rows = [_HEADINGS, *map(_row, found.variants)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(variant: Variant) -> tuple[str, ...]:
    return (
        variant.label,
        str(variant.largest_batch_size or "none"),
        str(variant.safe_batch_size or "none"),
        format_bytes(variant.memory_bytes),
        describe_fit(variant),
    )


def describe_fit(variant: Variant) -> str:
    if variant.is_safe:
        return "fits"
    return "fits, but not with the margin" if variant.fits else "does not fit"


def _left_out(found: WhatToChange) -> list[str]:
    return [f"Left out: {each.label}: {each.reason}" for each in found.left_out]
