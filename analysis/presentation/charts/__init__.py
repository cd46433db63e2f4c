"""Charts, pure: figures in, coordinates out. No request, no database.

    plots       the content of a chart: axes, traces, limits, marks, labels, and its table
    axes        values to fractions of the width or the height, and ticks
    labels      placement of texts without overlap
    drawing     a plot as coordinates for templates/analysis/parts/chart_drawing.html

    curves      the plots of one run: memory and speed by batch size
    estimate_errors   the plot of the errors of estimates
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
