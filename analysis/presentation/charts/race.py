"""The chart of a race: speed by peak memory, one point for each change at today's batch size."""

from __future__ import annotations

from analysis.presentation.charts.axes import bytes_axis, factor_axis
from analysis.presentation.charts.plots import Plot, PlotPoint, PointLabel, SeriesStyle, Table, Trace, pareto_front
from analysis.presentation.formatting import bytes_text
from engine.race.field import TODAY
from engine.race.row import Row
from engine.results.intervals import Interval

AS_TODAY = Interval(1.0, 1.0, 1.0)


def race_plot(rows: list[Row], size_of_today: str) -> Plot | None:
    known = [
        (row, speed, row.memory_bytes)
        for row in rows
        if (speed := AS_TODAY if row.entry == TODAY else row.speed) is not None and row.memory_bytes is not None
    ]
    if len(known) < 2:
        return None
    dots = tuple(
        PlotPoint(
            memory,
            speed.value,
            f"{row.label}: {bytes_text(memory)}, {speed.value:.2f}x",
            None if row.entry == TODAY else (speed.low, speed.high),
        )
        for row, speed, memory in known
    )
    front = pareto_front((dot.x, dot.y) for dot in dots)
    best = [row.label for (row, _, _), dot in zip(known, dots, strict=True) if (dot.x, dot.y) in front]
    cells = tuple(
        (
            row.label,
            f"{speed.value:.2f}x",
            "" if row.entry == TODAY else f"{speed.low:.2f} to {speed.high:.2f}",
            bytes_text(memory),
        )
        for row, speed, memory in known
    )
    return Plot(
        key="race",
        title=f"Speed by peak memory at {size_of_today}",
        sentence=f"No other change is as fast with as little memory as: {', '.join(best)}.",
        x=bytes_axis([dot.x for dot in dots], is_log=False),
        y=factor_axis([dot.interval[1] if dot.interval else dot.y for dot in dots], title="times as fast as today’s"),
        traces=(Trace("Changes", SeriesStyle.of(0), dots, has_line=False),),
        table=Table(("Change", "Speed", "Interval", "Peak memory"), cells, numbers=frozenset((1, 2, 3))),
        labels=tuple(PointLabel(dot.x, dot.y, row.label) for (row, _, _), dot in zip(known, dots, strict=True)),
        front=front,
    )
