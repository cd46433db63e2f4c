"""The plot of the errors of estimates over time: one trace for each GPU and family of models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analysis.presentation.charts.axes import change_axis, time_axis
from analysis.presentation.charts.plots import Plot, PlotPoint, PointLabel, SeriesStyle, Table, Trace
from analysis.presentation.estimate_error import Grade, Group, describe_difference

_TRACES = 8
"""As many traces as the palette has distinguishable colours; the table has all."""


def error_plot(groups: Sequence[Group]) -> Plot | None:
    shown = groups[:_TRACES]
    if not shown:
        return None
    traces = tuple(_trace(group, number) for number, group in enumerate(shown))
    dots = [dot for trace in traces for dot in trace.dots]
    grades = [grade for group in groups for grade in group.grades]
    worst = max(grades, key=lambda grade: abs(grade.peak_error))
    runs = "1 measured run had" if len(grades) == 1 else f"{len(grades)} measured runs had"
    return Plot(
        key="errors",
        title="Estimated relative to measured peak memory",
        sentence=f"{runs} an estimate; the largest error has run {worst.run_id}: "
        f"{describe_difference(worst.peak_error)}.",
        x=time_axis(dot.x for dot in dots),
        y=change_axis((dot.y for dot in dots), title="estimate relative to measurement"),
        traces=traces,
        table=_table(grades),
        labels=tuple(
            PointLabel(trace.dots[-1].x, trace.dots[-1].y, describe_difference(trace.dots[-1].y)) for trace in traces
        ),
    )


def _trace(group: Group, number: int) -> Trace:
    dots = tuple(
        PlotPoint(
            grade.finished_at.timestamp(),
            grade.peak_error,
            f"run {grade.run_id}: {describe_difference(grade.peak_error)}",
        )
        for grade in sorted(group.grades, key=lambda grade: grade.finished_at)
    )
    return Trace(f"{group.gpu}, {group.family}", SeriesStyle.of(number), dots, has_line=False)


def _table(grades: Iterable[Grade]) -> Table:
    rows = tuple(
        (
            f"run {grade.run_id}",
            f"{grade.finished_at:%Y-%m-%d %H:%M}",
            grade.gpu,
            grade.model,
            describe_difference(grade.peak_error),
            describe_difference(grade.boundary_error),
            "calibrated" if grade.is_calibrated else "not calibrated",
        )
        for grade in sorted(grades, key=lambda grade: grade.finished_at, reverse=True)
    )
    return Table(("Run", "Finished (UTC)", "GPU", "Model", "Peak memory", "Largest batch size", "Card"), rows)
