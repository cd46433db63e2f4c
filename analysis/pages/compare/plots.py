"""The charts of the compare page: memory and speed over each other, and speed against memory with its Pareto line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.charts.axes import batch_axis, bytes_axis, rate_axis
from analysis.charts.curves import memory_dots, speed_dots, speed_heights
from analysis.charts.plots import (
    Plot,
    PlotPoint,
    PointLabel,
    ReferenceLine,
    Table,
    Trace,
    pareto_front,
    table_of,
)
from analysis.formatting import bytes_text, rate, round_bytes
from analysis.lists.comparison.compared_run import ComparedRun, Outcome
from analysis.lists.comparison.query import CompareQuery
from engine.facts.figure_kinds import EMULATED


def compare_plots(subjects: Sequence[ComparedRun], query: CompareQuery) -> list[Plot]:
    is_log_x, is_log_y = query.x == "log", query.y == "log"
    plots = (
        memory_plot(subjects, is_log_x=is_log_x, is_log_y=is_log_y),
        speed_plot(subjects, is_log_x=is_log_x, is_log_y=is_log_y),
        tradeoff_plot(subjects),
    )
    return [plot for plot in plots if plot is not None]


def memory_plot(subjects: Sequence[ComparedRun], *, is_log_x: bool, is_log_y: bool) -> Plot | None:
    traces = [_memory_trace(one, one.outcome) for one in subjects if one.outcome and one.outcome.memory]
    if not traces:
        return None
    levels = _limits(subjects)
    points = [dot for trace in traces for dot in (*trace.dots, *trace.crosses)]
    heights = [*(dot.y for dot in points), *(level.value for level in levels)]
    return Plot(
        key="memory",
        title="Peak memory by batch size",
        sentence=" ".join(
            f"{trace.name.capitalize()} goes up to {bytes_text(trace.dots[-1].y)} at batch {trace.dots[-1].x:,}"
            f"{f', {trace.note}' if trace.note else ''}."
            for trace in traces
        ),
        x=batch_axis([int(dot.x) for dot in points], is_log=is_log_x),
        y=bytes_axis(heights, is_log=is_log_y),
        traces=tuple(traces),
        table=table_of(traces, "Batch", bytes_text),
        levels=tuple(levels),
        labels=_names(traces),
    )


def speed_plot(subjects: Sequence[ComparedRun], *, is_log_x: bool, is_log_y: bool) -> Plot | None:
    traces = []
    for one in subjects:
        if (outcome := one.outcome) and outcome.speed:
            dots = speed_dots(outcome.speed, outcome.speed_intervals, outcome.unsteady, f"{one.name}, ")
            traces.append(Trace(one.name, one.look, dots, is_predicted=one.is_predicted))
    if not traces:
        return None
    points = [dot for trace in traces for dot in trace.dots]
    fastest = [(trace.name.capitalize(), max(_on_line(trace), key=lambda dot: dot.y)) for trace in traces]
    return Plot(
        key="throughput",
        title="Speed by batch size",
        sentence=" ".join(
            f"{name} is fastest with {rate(best.y)} samples per second at batch {best.x:,}." for name, best in fastest
        ),
        x=batch_axis([int(dot.x) for dot in points], is_log=is_log_x),
        y=rate_axis(speed_heights(points), is_log=is_log_y),
        traces=tuple(traces),
        table=table_of(traces, "Batch", rate),
        labels=_names(traces),
    )


def tradeoff_plot(subjects: Sequence[ComparedRun]) -> Plot | None:
    traces = [trace for trace in map(_tradeoff_trace, subjects) if trace.dots]
    points = [(dot.x, dot.y) for trace in traces for dot in _on_line(trace)]
    if not points:
        return None
    front = pareto_front(points)
    on_it = [trace.name for trace in traces if any((dot.x, dot.y) in front for dot in trace.dots)]
    return Plot(
        key="tradeoff",
        title="Speed by peak memory",
        sentence="Each point is one measured batch size. The dotted line joins the Pareto-optimal points: no other "
        f"point is as fast with as little memory. It has points of {', '.join(on_it)}.",
        x=bytes_axis([dot.x for trace in traces for dot in trace.dots], is_log=False),
        y=rate_axis([height for trace in traces for height in speed_heights(trace.dots)], is_log=False),
        traces=tuple(traces),
        table=_front_table(traces, front),
        labels=_names(traces),
        front=front,
    )


def _memory_trace(subject: ComparedRun, outcome: Outcome) -> Trace:
    name = subject.name
    top = outcome.limit_bytes or max(outcome.memory.values())
    refused = ", ".join(f"{size:,}" for size in outcome.refused)
    verb = "would run out of memory" if subject.is_predicted else "out of memory"
    return Trace(
        name=name,
        style=subject.look,
        dots=memory_dots(outcome.memory, f"{name}, "),
        crosses=tuple(PlotPoint(size, top, f"{name}, batch {size:,}: {verb}") for size in outcome.refused),
        is_predicted=subject.is_predicted,
        is_emulated=subject.grade == EMULATED,
        note=f"{verb} at {refused}" if refused else "",
    )


def _tradeoff_trace(subject: ComparedRun) -> Trace:
    outcome = subject.outcome or Outcome()
    timed = speed_dots(outcome.speed, outcome.speed_intervals, outcome.unsteady)
    dots = tuple(
        replace(dot, x=memory, text=f"{subject.name}, batch {dot.x:,}: {bytes_text(memory)}, {rate(dot.y)} samples/s")
        for dot in timed
        if (memory := outcome.memory.get(int(dot.x))) is not None
    )
    return Trace(subject.name, subject.look, dots, has_line=False)


def _on_line(trace: Trace) -> list[PlotPoint]:
    return [dot for dot in trace.dots if dot.is_on_line] or list(trace.dots)


def _names(traces: Sequence[Trace]) -> tuple[PointLabel, ...]:
    """Each run's name at its last point, so that a picture without its legend still says whose line is whose."""
    last = (max(trace.dots, key=lambda dot: dot.x) for trace in traces)
    return tuple(PointLabel(dot.x, dot.y, trace.name) for dot, trace in zip(last, traces, strict=True))


def _limits(subjects: Sequence[ComparedRun]) -> list[ReferenceLine]:
    runs: dict[int, list[int]] = {}
    for subject in subjects:
        if subject.outcome and subject.outcome.memory and subject.outcome.limit_bytes:
            runs.setdefault(subject.outcome.limit_bytes, []).append(subject.run_id)
    if len(runs) == 1:
        return [ReferenceLine(limit, f"limit {round_bytes(limit)}") for limit in runs]
    return [ReferenceLine(limit, f"{round_bytes(limit)} ({', '.join(map(str, ids))})") for limit, ids in runs.items()]


def _front_table(traces: Sequence[Trace], front: Sequence[tuple[float, float]]) -> Table:
    dots = sorted((dot for trace in traces for dot in trace.dots), key=lambda dot: dot.x)
    rows = [
        (
            *dot.text.split(": ")[0].split(", "),
            bytes_text(dot.x),
            rate(dot.y),
            "yes" if (dot.x, dot.y) in front else "no",
        )
        for dot in dots
    ]
    return Table(("Run", "Batch", "Peak memory", "Samples/s", "On the Pareto line"), tuple(rows), frozenset({1, 2, 3}))
