"""Charts, pure: figures in, coordinates out. No request, no database.

    plots       what a chart shows: axes, traces, limits, marks, labels, and the same as a table
    axes        from values to fractions of the width or the height, and where the ticks stand
    labels      where a text goes so that it covers nothing
    drawing     a plot as coordinates for templates/analysis/parts/chart_drawing.html

    curves      the plots of one run: memory and speed by batch size
    estimate_errors   the plot of how far estimates were off
    bars        memory bars in percent of the device
    sparkline   a run in a line of the history

The plots of the compare and the trend page are made there. Only batch sizes that were run are drawn; an out-of-memory
is a point too, on the limit.
"""

from analysis.presentation.charts.bars import MemoryBar, Stack, memory_bars, memory_stack
from analysis.presentation.charts.curves import memory_plot, speed_plot
from analysis.presentation.charts.drawing import NARROW, WIDE, Chart, chart_of, draw
from analysis.presentation.charts.plots import Plot

__all__ = [
    "NARROW",
    "WIDE",
    "Chart",
    "MemoryBar",
    "Plot",
    "Stack",
    "chart_of",
    "draw",
    "memory_bars",
    "memory_plot",
    "memory_stack",
    "speed_plot",
]
