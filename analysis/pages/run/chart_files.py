"""A chart of a finished measurement as a separate file: its template and context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import Http404

from analysis.charts.bars import Stack
from analysis.charts.drawing import HEIGHT
from analysis.models import Run
from analysis.pages.kinds.page import Page
from analysis.pages.kinds.size import result_plots
from analysis.presentation import labels, memory_breakdown
from analysis.presentation.kinds import presentation_of, settings_of_run
from analysis.presentation.origin import Origin
from analysis.presentation.unreadable import read_or_none
from engine.questions.documents.measured import Measured

ROW_PIXELS, LEGEND_PIXELS, LINE_PIXELS = 40, 122, 15
HEAD_PIXELS, FOOT_PIXELS = 40, 16


def chart_file(run: Run, key: str) -> Page:
    """Return the chart `memory`, `throughput` or `kinds`. Raises Http404 where this run has no figures for it."""
    has_probes = presentation_of(run).shows_probes and run.result
    result = read_or_none(Measured.from_dict, run.result) if has_probes else None
    if result is None:
        raise Http404
    source = _source(run, result)
    foot = {"source": source, "foot": [(index * LINE_PIXELS, line) for index, line in enumerate(source)]}
    foot_pixels = FOOT_PIXELS + len(source) * LINE_PIXELS
    if key == "kinds" and (stacks := memory_breakdown.stacks(result)):
        return "analysis/svg/chart_kinds.svg", foot | _kinds(stacks, result, foot_pixels)
    for plot in result_plots(result):
        if plot.key == key:
            return "analysis/svg/chart.svg", foot | {"plot": plot, "height": HEAD_PIXELS + HEIGHT + foot_pixels}
    raise Http404


def _kinds(stacks: Sequence[Stack], result: Measured, foot_pixels: int) -> dict[str, Any]:
    return {
        "rows": [(index * ROW_PIXELS, stack) for index, stack in enumerate(stacks)],
        "legend": [(20 + index * LEGEND_PIXELS, piece) for index, piece in enumerate(stacks[0].slices)],
        "bottom": len(stacks) * ROW_PIXELS,
        "height": len(stacks) * ROW_PIXELS + foot_pixels,
        "limit_bytes": result.limit_bytes,
    }


def _source(run: Run, result: Measured) -> list[str]:
    """Write "BERT base on A100-SXM4-80GB", "fp32 · AdamW · 128 tokens · run 12, measured 2026-11-20", origin."""
    where = f"{labels.model_name(result.spec['model'])} on {labels.short_device_name(result.device.name)}"
    day = f" {run.finished_at:%Y-%m-%d}" if run.finished_at else ""
    what = " · ".join([*settings_of_run(run), f"run {run.pk}, measured{day}"])
    return [line for line in (where, what, Origin.of(run).mark) if line]
