"""The chart of a race: speed by peak memory, one point for each change at today's batch size."""

from __future__ import annotations

from analysis.charts.axes import bytes_axis, factor_axis
from analysis.charts.plots import Plot, PlotPoint, PointLabel, SeriesStyle, Table, Trace, pareto_front
from analysis.formatting import bytes_text
from engine.facts.intervals import Interval
from engine.race.field import TODAY
from engine.race.row import Row

AS_TODAY = Interval(1.0, 1.0, 1.0)


def race_plot(rows: list[Row], size_of_today: str) -> Plot | None:
    dots, cells = [], []
    for row in rows:
        is_today, memory = row.entry == TODAY, row.memory_bytes
        speed = AS_TODAY if is_today else row.speed
        if speed is None or memory is None:
            continue
        ends = None if is_today else (speed.low, speed.high)
        dots.append(PlotPoint(memory, speed.value, f"{row.label}: {bytes_text(memory)}, {speed.value:.2f}x", ends))
        interval = f"{speed.low:.2f} to {speed.high:.2f}" if ends else ""
        cells.append((row.label, f"{speed.value:.2f}x", interval, bytes_text(memory)))
    if len(dots) < 2:
        return None
    front = pareto_front((dot.x, dot.y) for dot in dots)
    best = [label for (label, *_), dot in zip(cells, dots, strict=True) if (dot.x, dot.y) in front]
    return Plot(
        key="race",
        title=f"Speed by peak memory at {size_of_today}",
        sentence=f"No other change is as fast with as little memory as: {', '.join(best)}.",
        x=bytes_axis([dot.x for dot in dots], is_log=False),
        y=factor_axis([dot.interval[1] if dot.interval else dot.y for dot in dots], title="times as fast as today’s"),
        traces=(Trace("Changes", SeriesStyle.of(0), tuple(dots), has_line=False),),
        table=Table(("Change", "Speed", "Interval", "Peak memory"), tuple(cells), numbers=frozenset((1, 2, 3))),
        labels=tuple(PointLabel(dot.x, dot.y, label) for (label, *_), dot in zip(cells, dots, strict=True)),
        front=front,
    )
