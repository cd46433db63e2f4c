"""The charts of the trend page: each figure's change over time, its medians, its steps, and version changes."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.pages.trend.series import Sample, Series, VersionMark
from analysis.pages.trend.step_detection import Step
from analysis.presentation.charts.axes import change_axis, time_axis
from analysis.presentation.charts.plots import (
    Annotation,
    Plot,
    PlotPoint,
    PointLabel,
    ReferenceLine,
    SeriesStyle,
    Table,
    Trace,
)

_STYLE = SeriesStyle.of(0)


def trend_plot(series: Series, marks: Sequence[VersionMark]) -> Plot:
    """In percent of the first stretch, so that 3 % looks the same on every chart; figures stand beside the lines."""
    base = series.stretches[0].median
    dots = tuple(
        PlotPoint(
            _seconds(sample), value / base - 1, f"run {sample.run_id}, {sample.at:%Y-%m-%d %H:%M}: {series.text(value)}"
        )
        for sample, value in zip(series.samples, series.values, strict=True)
    )
    return Plot(
        key=series.key,
        title=series.title,
        sentence=_sentence(series),
        x=time_axis([dot.x for dot in dots]),
        y=change_axis([dot.y for dot in dots], title="change from the first runs"),
        traces=(Trace(series.title, _STYLE, dots),),
        table=_table(series),
        levels=_medians(series, base, dots),
        marks=(*_version_marks(marks, dots), *_step_marks(series)),
        labels=(PointLabel(dots[-1].x, dots[-1].y, series.text(series.values[-1])),),
    )


def _medians(series: Series, base: float, dots: Sequence[PlotPoint]) -> tuple[ReferenceLine, ...]:
    """Draw a line over each stretch; the first and those that are a step have their figure beside it."""
    labelled = {0, *(step.index for step in series.steps)}
    return tuple(
        ReferenceLine(
            stretch.median / base - 1,
            f"median {series.text(stretch.median)}" if stretch.start in labelled else "",
            is_limit=False,
            start=dots[stretch.start].x,
            end=dots[stretch.stop - 1].x,
        )
        for stretch in series.stretches
    )


def describe_percent(step: Step) -> str:
    """Write "+6.2 %"."""
    return f"{'+' if step.fraction > 0 else '−'}{abs(step.fraction) * 100:.1f} %"


def _version_marks(marks: Sequence[VersionMark], dots: Sequence[PlotPoint]) -> list[Annotation]:
    """Those within the chart: a run that is in no chart may lie before it."""
    first, last = dots[0].x, dots[-1].x
    return [
        Annotation(_seconds(mark.sample), str(mark.number)) for mark in marks if first <= _seconds(mark.sample) <= last
    ]


def _step_marks(series: Series) -> list[Annotation]:
    """Half-way between the two runs, so that it covers neither a run nor a version's mark."""
    moments = [_seconds(sample) for sample in series.samples]
    middles = [(step, (moments[step.index - 1] + moments[step.index]) / 2) for step in series.steps]
    return [Annotation(middle, describe_percent(step), is_step=True) for step, middle in middles]


def _sentence(series: Series) -> str:
    first, last = series.values[0], series.values[-1]
    runs = f"{len(series.values)} runs" if len(series.values) > 1 else "one run"
    steps = ", ".join(f"{describe_percent(step)} with run {series.samples[step.index].run_id}" for step in series.steps)
    sentence = f"{series.title} over {runs}: from {series.text(first)} to {series.text(last)}."
    return f"{sentence} Steps: {steps}." if steps else f"{sentence} No step."


def _table(series: Series) -> Table:
    rows = [
        (f"{sample.at:%Y-%m-%d %H:%M}", f"run {sample.run_id}", series.text(value))
        for sample, value in zip(series.samples, series.values, strict=True)
    ]
    return Table(("Finished (UTC)", "Run", series.title), tuple(rows), frozenset({2}))


def _seconds(sample: Sample) -> float:
    return sample.at.timestamp()
