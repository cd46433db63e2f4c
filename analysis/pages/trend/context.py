"""The context of the trend page: what is said of its series, and a chart of each figure over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from analysis.charts.axes import change_axis, time_axis
from analysis.charts.plots import (
    Annotation,
    Plot,
    PlotPoint,
    PointLabel,
    ReferenceLine,
    SeriesStyle,
    Table,
    Trace,
)
from analysis.formatting import percent_more, round_percent
from analysis.lists.trend.series import (
    Acknowledgements,
    Sample,
    Series,
    VersionMark,
    series_of,
    steps_found,
    version_marks,
)
from analysis.lists.trend.step_detection import POINTS_PER_SIDE_MIN, THRESHOLD
from analysis.presentation import labels
from analysis.runs.columns.series import SeriesKey
from engine.facts.figure_kinds import EMULATED


def trend_context(
    query: SeriesKey, samples: Sequence[Sample], acknowledgements: Acknowledgements, *, is_cut: bool
) -> dict[str, Any]:
    """Return the context for `samples`, oldest first; `is_cut`: older samples are not shown."""
    series, marks = series_of(samples), version_marks(samples)
    steps = [found for one in series for found in steps_found(one, acknowledgements)]
    return {
        "query": query,
        "model_name": labels.model_name(query.model),
        "place": labels.short_device_name(query.gpu),
        "here": f"{labels.model_name(query.model)} on {labels.short_device_name(query.gpu)}",
        "settings": settings_of(query, samples[-1].own_settings if samples else ()),
        "samples": samples,
        "is_cut": is_cut,
        "reported": [sample for sample in samples if sample.origin.is_reported],
        "left_out": [sample for sample in samples if sample.left_out],
        "marks": marks,
        "steps": sorted(steps, key=lambda found: found.after.at, reverse=True),
        "points_needed": POINTS_PER_SIDE_MIN,
        "can_have_steps": any(len(one.values) >= 2 * POINTS_PER_SIDE_MIN for one in series),
        "threshold": round_percent(THRESHOLD),
        "charts": [trend_plot(one, marks) for one in series],
    }


def settings_of(query: SeriesKey, of_own_script: Iterable[str] = ()) -> list[str]:
    limit = labels.describe_limit(query.memory_limit_bytes)
    if query.is_own_script:
        return [*of_own_script, *filter(None, [limit])]
    field = {"image_size": query.input_size, "sequence_length": query.input_size}
    grade = "" if query.emulate_ranks is None else f"{EMULATED} on one device"
    return [*labels.describe_settings(query.parameters | field), *filter(None, [grade, limit])]


def trend_plot(series: Series, marks: Sequence[VersionMark]) -> Plot:
    """Draw in percent of the first stretch, so that 3 % looks the same on every chart; lines show absolute figures."""
    base = series.stretches[0].median
    dots = tuple(_dot(series, place, base) for place in range(len(series.values)))
    thresholds = _thresholds(series, base, dots)
    ends = [end for dot in dots if dot.interval for end in dot.interval]
    return Plot(
        key=series.key,
        title=series.title,
        sentence=_sentence(series),
        x=time_axis([dot.x for dot in dots]),
        y=change_axis(
            [*(dot.y for dot in dots), *(line.value for line in thresholds), *ends], title="change from the first runs"
        ),
        traces=(Trace(series.title, SeriesStyle.of(0), dots),),
        table=_table(series),
        levels=(*_medians(series, base, dots), *thresholds),
        marks=(*_version_marks(marks, dots), *_step_marks(series)),
        labels=(PointLabel(dots[-1].x, dots[-1].y, series.text(series.values[-1])),),
    )


def _dot(series: Series, place: int, base: float) -> PlotPoint:
    sample, value = series.samples[place], series.values[place]
    interval = series.interval_text(place)
    text = (
        f"run {sample.run_id}, {sample.at:%Y-%m-%d %H:%M}: {series.text(value)}{f' ({interval})' if interval else ''}"
    )
    known = series.intervals[place] if series.intervals else None
    ends = (known.low / base - 1, known.high / base - 1) if known else None
    return PlotPoint(sample.at.timestamp(), value / base - 1, text, interval=ends)


def _thresholds(series: Series, base: float, dots: Sequence[PlotPoint]) -> list[ReferenceLine]:
    lines = series.thresholds
    return [
        ReferenceLine(
            figure / base - 1,
            f"alert: {series.text(figure)}" if (start, end, figure) == lines[-1] else "",
            look="alert",
            start=dots[start].x,
            end=dots[end].x,
        )
        for start, end, figure in lines
    ]


def _medians(series: Series, base: float, dots: Sequence[PlotPoint]) -> tuple[ReferenceLine, ...]:
    labelled = {0, *(step.index for step in series.steps)}
    return tuple(
        ReferenceLine(
            stretch.median / base - 1,
            f"median {series.text(stretch.median)}" if stretch.start in labelled else "",
            look="median",
            start=dots[stretch.start].x,
            end=dots[stretch.stop - 1].x,
        )
        for stretch in series.stretches
    )


def _version_marks(marks: Sequence[VersionMark], dots: Sequence[PlotPoint]) -> list[Annotation]:
    first, last = dots[0].x, dots[-1].x
    return [
        Annotation(mark.sample.at.timestamp(), str(mark.number))
        for mark in marks
        if first <= mark.sample.at.timestamp() <= last
    ]


def _step_marks(series: Series) -> list[Annotation]:
    """Place each mark half-way between two runs, so that it covers neither a run nor a version's mark."""
    moments = [sample.at.timestamp() for sample in series.samples]
    middles = [(step, (moments[step.index - 1] + moments[step.index]) / 2) for step in series.steps]
    return [Annotation(middle, percent_more(step.fraction), is_step=True) for step, middle in middles]


def _sentence(series: Series) -> str:
    first, last = series.values[0], series.values[-1]
    runs = f"{len(series.values)} runs" if len(series.values) > 1 else "one run"
    steps = ", ".join(
        f"{percent_more(step.fraction)} with run {series.samples[step.index].run_id}" for step in series.steps
    )
    sentence = f"{series.title} over {runs}: from {series.text(first)} to {series.text(last)}."
    alert = f"The alert threshold is {series.text(series.thresholds[-1][2])}."
    return f"{sentence} Steps: {steps}. {alert}" if steps else f"{sentence} No step. {alert}"


def _table(series: Series) -> Table:
    head = ("Finished (UTC)", "Run", series.title, *(["95 % interval"] if series.intervals else []))
    rows = [
        (
            f"{sample.at:%Y-%m-%d %H:%M}",
            f"run {sample.run_id}",
            series.text(value),
            *([series.interval_text(place)] if series.intervals else []),
        )
        for place, (sample, value) in enumerate(zip(series.samples, series.values, strict=True))
    ]
    return Table(head, tuple(rows), frozenset({2, 3}))
