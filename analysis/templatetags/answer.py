"""The filters that tell a template what a result says: each is a pure function of the result, or of a part of it."""

from __future__ import annotations

from collections.abc import Sequence

from django import template

from analysis.presentation import memory_breakdown, result_summary
from engine.describe import boundary, does_not_fit, key_figures, ranks, reserve, result
from engine.tune.training import stated_throughputs

register = template.Library()
for each in (
    *(key_figures.key_figures, key_figures.figures, boundary.why_not_certified, does_not_fit.ways_to_fit),
    *(reserve.describe_reserve, result.describe_timing, result.time_by_part, ranks.rank_peaks, stated_throughputs),
    *(result_summary.reach, result_summary.certificate, result_summary.training_rows, result_summary.loader_limit),
    *(result_summary.paste_note, result_summary.beside_measurement, result_summary.environment_rows),
    *(memory_breakdown.bars, memory_breakdown.stacks, memory_breakdown.levels),
):
    register.filter(each)


@register.filter
def has_any(rows: Sequence[object], figure: str) -> bool:
    """Whether a row knows this figure, so that a table has a column of it."""
    return any(getattr(row, figure) is not None for row in rows)


@register.filter
def spaced(name: str) -> str:
    """Write a name of the code as words: "optimizer_step" as "optimizer step"."""
    return name.replace("_", " ")
