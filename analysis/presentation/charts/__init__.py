"""Charts of a run, pure: probes in, coordinates out. No request, no database.

    curves      what a chart shows: series, limit, out-of-memory sizes, marks, and its sentence
    scales      from batch sizes and bytes to pixels, and where the ticks stand
    labels      where a label goes so that it covers nothing
    drawing     a curve as coordinates for templates/analysis/parts/curve.html
    bars        memory bars in percent of the device

    sparkline   a run in a line of the history

    axes, plots, plot_drawing   the same for charts of several runs: compare and trend

Only batch sizes that were run are drawn; an out-of-memory is a point too, on the limit.
"""

from analysis.presentation.charts.bars import MemoryBar, Stack, memory_bars, memory_stack
from analysis.presentation.charts.curves import Curve, memory_curve, throughput_curve
from analysis.presentation.charts.drawing import NARROW, WIDE, draw

__all__ = [
    "NARROW",
    "WIDE",
    "Curve",
    "MemoryBar",
    "Stack",
    "draw",
    "memory_bars",
    "memory_curve",
    "memory_stack",
    "throughput_curve",
]
