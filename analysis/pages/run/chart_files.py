"""A chart of a finished measurement as a separate file: its template and context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analysis.models import Run
from analysis.pages.run.context import result_plots
from analysis.presentation import labels, memory_breakdown
from analysis.presentation.charts import WIDE, Stack, draw
from analysis.presentation.stored_result import StoredResult, read_result

ROW_PIXELS = 40
LEGEND_PIXELS = 122
FOOT_PIXELS = 46


@dataclass(frozen=True, slots=True)
class ChartFile:
    """A template and its context."""

    template: str
    context: dict[str, Any]


def chart_file(run: Run, key: str) -> ChartFile | None:
    """Return the chart `memory`, `throughput` or `kinds`; None where this run has no figures for it."""
    if not run.is_measurement or not run.result:
        return None
    result = read_result(run.result)
    source = {"source": _source(run, result)}
    if key == "kinds":
        stacks = memory_breakdown.stacks(result)
        return ChartFile("analysis/chart_kinds.svg", source | _kinds(stacks, result)) if stacks else None
    plot = next((plot for plot in result_plots(run, result) if plot.key == key), None)
    return ChartFile("analysis/chart.svg", {**source, "plot": plot, "drawing": draw(plot, WIDE)}) if plot else None


def _kinds(stacks: Sequence[Stack], result: StoredResult) -> dict[str, Any]:
    """Give a row for each size, the legend above them."""
    return {
        "rows": [(index * ROW_PIXELS, stack) for index, stack in enumerate(stacks)],
        "legend": [(20 + index * LEGEND_PIXELS, piece) for index, piece in enumerate(stacks[0].slices)],
        "height": len(stacks) * ROW_PIXELS + FOOT_PIXELS,
        "limit_bytes": result.limit_bytes,
    }


def _source(run: Run, result: StoredResult) -> tuple[str, str]:
    """Write "BERT base on A100-SXM4-80GB", "fp32 · AdamW · 128 tokens · run 12, measured 2026-11-20"."""
    where = f"{labels.model_name(result.spec['model'])} on {labels.short_device_name(result.device.name)}"
    day = f" {run.finished_at:%Y-%m-%d}" if run.finished_at else ""
    return where, " · ".join([*labels.settings_of_run(run), f"run {run.pk}, measured{day}"])
