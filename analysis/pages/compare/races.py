"""The context of the compare page for races: a table of changes, and one chart of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis.charts.axes import change_axis, factor_axis
from analysis.charts.plots import Plot, PlotPoint, Table, Trace
from analysis.formatting import percent_more
from analysis.lists.comparison.query import CHARTED_MAX, CompareQuery
from analysis.lists.comparison.races import ComparedRace, change_rows, compared_races, races_headline
from analysis.models import Run
from analysis.pages.compare.context import facts_context
from engine.race.field import TODAY


def races_context(runs: Sequence[Run], query: CompareQuery) -> dict[str, Any]:
    races = compared_races(runs)
    rows = change_rows(races)
    return facts_context([each.subject for each in races], query, has_baseline=False) | {
        "headline": races_headline(races),
        "races": races,
        "rows": [row for row in rows if row.is_tried],
        "rows_not_tried": [row for row in rows if not row.is_tried],
        "chart": races_plot(races) if len(races) <= CHARTED_MAX else None,
    }


def races_plot(races: Sequence[ComparedRace]) -> Plot | None:
    """Plot the speed of each change by its memory, both against the race's own baseline; None without any change."""
    drawn = [Trace(each.subject.name, each.subject.look, _dots(each), has_line=False) for each in races]
    traces = [trace for trace in drawn if trace.dots]
    dots = [dot for trace in traces for dot in trace.dots]
    if not dots:
        return None
    cells = [
        (trace.name, dot.text.partition(": ")[0], f"{dot.y:.2f}x", f"{low:.2f} to {high:.2f}", percent_more(dot.x))
        for trace in traces
        for dot in trace.dots
        for low, high in [dot.interval or (dot.y, dot.y)]
    ]
    return Plot(
        key="races",
        title="Speed and memory of each change against today’s",
        sentence="Above 1x a change is faster than the training of that race, left of 0 it takes less memory.",
        x=change_axis([dot.x for dot in dots], title="change of peak memory"),
        y=factor_axis([dot.interval[1] if dot.interval else dot.y for dot in dots], title="times as fast as today’s"),
        traces=tuple(traces),
        table=Table(("Race", "Change", "Speed", "Interval", "Memory"), tuple(cells), numbers=frozenset((2, 3, 4))),
    )


def _dots(each: ComparedRace) -> tuple[PlotPoint, ...]:
    race = each.race
    if race is None:
        return ()
    return tuple(
        PlotPoint(
            more,
            row.speed.value,
            f"{row.label}: {one.speed}, memory {percent_more(more)}",
            (row.speed.low, row.speed.high),
        )
        for one in race.table
        if (row := one.row).entry != TODAY and row.speed is not None and not one.is_on_top
        if (more := race.memory_change(row.memory_bytes)) is not None
    )
