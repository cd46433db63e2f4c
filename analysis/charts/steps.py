"""The chart of a watched training: the memory that it held after its steps."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.charts.axes import bytes_axis, step_axis
from analysis.charts.plots import Plot, PlotPoint, ReferenceLine, SeriesStyle, Trace, table_of
from analysis.formatting import bytes_text, round_bytes
from engine.recording.recording import Sample

DOTS_MAX = 50


def steps_plot(samples: Sequence[Sample], limit_bytes: int | None) -> Plot | None:
    """Draw some of the samples, the first and the last among them; None where they show no course."""
    if len(samples) < 2:
        return None
    stride = -(-len(samples) // DOTS_MAX)
    shown = [*samples[:-1:stride], samples[-1]]
    held = tuple(PlotPoint(step, size, f"step {step:,}: {bytes_text(size)} held") for step, _, size, _ in shown)
    peak = tuple(PlotPoint(step, most, f"step {step:,}: {bytes_text(most)} at most") for step, _, _, most in shown)
    traces = (
        Trace("Held after the step", SeriesStyle("line-allocated"), held),
        Trace("Peak until then", SeriesStyle("line-memory"), peak),
    )
    (first, _, before, _), (last, _, after, _) = shown[0], shown[-1]
    return Plot(
        key="steps",
        title="Memory by step",
        sentence=f"{bytes_text(before)} were held after step {first:,}, {bytes_text(after)} after step {last:,}.",
        x=step_axis(last),
        y=bytes_axis([limit_bytes or 0, *(dot.y for dot in peak)], is_log=False, title="memory"),
        traces=traces,
        table=table_of(traces, "Step", bytes_text),
        levels=(ReferenceLine(limit_bytes, f"card {round_bytes(limit_bytes)}"),) if limit_bytes else (),
    )
