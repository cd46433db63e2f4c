"""The filters that tell a template what a result says: each is a pure function of the result, or of a part of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from django import template

from analysis.presentation import estimate_summary, memory_breakdown, result_summary
from analysis.presentation.filled_memory import filled_memory
from engine.describe import boundary, does_not_fit, key_figures, ranks, reserve, result
from engine.questions.documents import words
from engine.trainings.script.result import stated_throughputs

register = template.Library()
_FIGURES = re.compile(r"^\w+|\d[\d,.]*\d|\d")
register.filter("estimate_figures", estimate_summary.figures)
register.filter("estimate_key_figures", estimate_summary.key_figures)
for each in (
    *(key_figures.key_figures, key_figures.figures, boundary.why_not_certified, does_not_fit.ways_to_fit),
    *(reserve.describe_reserve, result.describe_timing, result.time_by_part, ranks.rank_peaks, stated_throughputs),
    *(words.training_rows, words.loader_limit, words.paste_note),
    *(result_summary.reach, result_summary.certificate, result_summary.beside_measurement),
    *(result_summary.environment_rows, filled_memory, result_summary.result_bars, memory_breakdown.stack),
    *(memory_breakdown.stacks, memory_breakdown.levels, memory_breakdown.peaks_without_parts),
    *(estimate_summary.estimate_bars, estimate_summary.kind_rows),
):
    register.filter(each)


@register.filter
def has_any(rows: Sequence[object], figure: str) -> bool:
    """Whether a row knows this figure, so that a table has a column of it."""
    return any(getattr(row, figure) is not None for row in rows)


@register.filter
def says_other_than(printed: str, said: str) -> bool:
    """Whether a headline of another build begins otherwise, or has other figures: words alone change often."""
    return _FIGURES.findall(printed) != _FIGURES.findall(said)


@register.filter
def spaced(name: str) -> str:
    """Write a name of the code as words: "optimizer_step" as "optimizer step"."""
    return name.replace("_", " ")
