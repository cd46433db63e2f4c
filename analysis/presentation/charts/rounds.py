"""The chart of a comparison of speeds without a figure: each round of two sizes, as two clouds."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.presentation.charts.axes import Axis, rate_axis
from analysis.presentation.charts.plots import Plot, PlotPoint, SeriesStyle, Table, Trace
from analysis.presentation.formatting import rate
from engine.results.speed_rounds import SpeedRound, Stage


def rounds_plot(rounds: Sequence[SpeedRound], today: int) -> Plot | None:
    speeds = [
        {b.batch_size: b.batch_size * b.micro_batches / b.step_seconds for b in each.blocks if b.step_seconds > 0}
        for each in rounds
        if each.stage is Stage.EVALUATION and each.left_out is None
    ]
    others = {size for each in speeds for size in each} - {today}
    if len(speeds) < 2 or len(others) != 1 or any(len(each) != 2 for each in speeds):
        return None
    other = others.pop()
    ahead = sum(each[other] > each[today] for each in speeds)
    traces = []
    for place, size in enumerate((today, other)):
        dots = tuple(
            PlotPoint(number, each[size], f"round {number}, batch {size:,}: {rate(each[size])} samples/s")
            for number, each in enumerate(speeds, start=1)
        )
        name = f"batch {size:,}{', today' if size == today else ''}"
        traces.append(Trace(name, SeriesStyle.of(1 - place), dots, has_line=False))
    cells = tuple((str(number), rate(each[today]), rate(each[other])) for number, each in enumerate(speeds, start=1))
    ticks = tuple((float(number), str(number)) for number in range(1, len(speeds) + 1))
    return Plot(
        key="rounds",
        title="Speed in each round",
        sentence=f"{other:,} was faster than {today:,} in {ahead} of {len(speeds)} rounds.",
        x=Axis("round", 0.5, len(speeds) + 0.5, ticks),
        y=rate_axis([speed for each in speeds for speed in each.values()], is_log=True),
        traces=tuple(traces),
        table=Table(("Round", *(trace.name for trace in traces)), cells, frozenset((0, 1, 2))),
    )
