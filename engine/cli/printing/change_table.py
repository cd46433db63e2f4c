"""The lines that `estimate --what-to-change` prints: the smallest changes that fit, and everything that was tried."""

from __future__ import annotations

from ...estimate.alternatives import ORDER
from ...estimate.what_to_change import Variant, WhatToChange
from ...text.units import format_bytes
from .terminal import table_lines, wrapped

ADVICE_SHOWN = 5


def change_lines(found: WhatToChange, width: int | None = None) -> list[str]:
    rows = [
        (
            variant.label,
            str(variant.largest_batch_size or "none"),
            str(variant.safe_batch_size or "none"),
            format_bytes(variant.memory_bytes),
            describe_fit(variant),
        )
        for variant in found.variants
    ]
    left_out = [f"Left out: {each.label}: {each.reason}" for each in found.left_out]
    headings = ("settings", "largest", "with margin", f"at {found.batch_size:,}", "")
    table = table_lines(headings, rows, width, right=(1, 2, 3))
    return ["", *wrapped(_advice(found), width), "", *table, *wrapped(left_out, width), ""]


def _advice(found: WhatToChange) -> list[str]:
    batch, limit = f"batch {found.batch_size:,}", format_bytes(found.limit_bytes)
    if found.requested.is_safe:
        return [f"WHAT TO CHANGE, estimated: nothing, {batch} would fit into {limit} with the margin."]
    if not found.advice:
        return [f"WHAT TO CHANGE, estimated: nothing that was tried makes {batch} fit into {limit} with the margin."]
    title = f"WHAT TO CHANGE so that {batch} fits into {limit}, estimated, the smallest change first:"
    shown = found.advised[:ADVICE_SHOWN]
    rows = [f"  {number}. {each.label}: {'; '.join(each.costs)}" for number, each in enumerate(shown, start=1)]
    return [title, *rows, f"  {ORDER} Speed is not estimated: measure it."]


def describe_fit(variant: Variant) -> str:
    if variant.is_safe:
        return "fits"
    return "fits, but not with the margin" if variant.fits else "does not fit"
