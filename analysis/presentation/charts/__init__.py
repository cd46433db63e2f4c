"""Charts, pure: figures in, coordinates out. No request, no database.

The plots of the compare and the trend page are made there. Only batch sizes that were run are drawn; an out-of-memory
is a point too, on the limit.
"""

from analysis.presentation.charts.bars import MemoryBar, Stack, memory_bars, memory_stack
from analysis.presentation.charts.curves import memory_plot, speed_plot
from analysis.presentation.charts.plots import Plot
from analysis.presentation.charts.rounds import rounds_plot

__all__ = [
    "MemoryBar",
    "Plot",
    "Stack",
    "memory_bars",
    "memory_plot",
    "memory_stack",
    "rounds_plot",
    "speed_plot",
]
