"""A plot as a plotly figure: a plain dict that static/js/charts.js draws over the SVG. Plotly is not imported."""

from __future__ import annotations

import math
from typing import Any

from analysis.presentation.charts.axes import Axis
from analysis.presentation.charts.drawing import WIDE
from analysis.presentation.charts.figures import BAD, BAD_TEXT, CARD, DIM, GRID, TEXT
from analysis.presentation.charts.plot_drawing import LIMIT_RISE, MEDIAN_RISE, draw_plot
from analysis.presentation.charts.plots import COLOURS, DASHES, MARKERS, Annotation, Plot, ReferenceLine, Trace

WARN = "#e69f00"
_FONT = {"color": DIM, "family": "Inter, system-ui, sans-serif", "size": 12}


def plotly_figure(plot: Plot) -> dict[str, Any]:
    """Data and layout; figures in base units, their text beside them for the pointer."""
    front = [_front(plot)] if plot.front else []
    crosses = [_crosses(trace) for trace in plot.traces if trace.crosses]
    return {"data": [*front, *map(_trace, plot.traces), *crosses], "layout": _layout(plot)}


def _trace(trace: Trace) -> dict[str, Any]:
    colour, symbol = COLOURS[trace.look.colour], MARKERS[trace.look.marker]
    return {
        "type": "scatter",
        "mode": "lines+markers" if trace.has_line else "markers",
        "name": trace.name,
        "x": [dot.x for dot in trace.dots],
        "y": [dot.y for dot in trace.dots],
        "customdata": [dot.text for dot in trace.dots],
        "hovertemplate": "%{customdata}<extra></extra>",
        "line": {"color": colour, "width": 2, "dash": DASHES[trace.look.dash]},
        "marker": {
            "size": 4 if trace.is_dense else 8,
            "color": colour,
            "symbol": f"{symbol}-open" if trace.is_estimate else symbol,
        },
    }


def _crosses(trace: Trace) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{trace.name}: out of memory",
        "x": [dot.x for dot in trace.crosses],
        "y": [dot.y for dot in trace.crosses],
        "customdata": [dot.text for dot in trace.crosses],
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {"symbol": "x-open", "size": 11, "color": BAD, "line": {"color": BAD, "width": 1.5}},
    }


def _front(plot: Plot) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "Pareto line",
        "x": [x for x, _ in plot.front],
        "y": [y for _, y in plot.front],
        "hoverinfo": "skip",
        "line": {"color": DIM, "width": 1.5, "dash": "dot"},
    }


def _layout(plot: Plot) -> dict[str, Any]:
    return {
        "height": 330,
        "margin": {"l": 62, "r": 18, "t": 34, "b": 46},
        "paper_bgcolor": CARD,
        "plot_bgcolor": CARD,
        "font": _FONT,
        "hovermode": "closest",
        "showlegend": False,
        "xaxis": _axis(plot.x, 11 if plot.x.quantity == "batch" else 7),
        "yaxis": _axis(plot.y, 6),
        "shapes": [*(_level_line(level) for level in plot.levels), *(_mark_line(mark) for mark in plot.marks)],
        "annotations": [*_level_texts(plot), *_mark_texts(plot)],
    }


def _axis(axis: Axis, at_most: int) -> dict[str, Any]:
    ticks = axis.ticks(at_most)
    return {
        "type": "log" if axis.is_log else "linear",
        "range": [_place(axis.low, axis), _place(axis.high, axis)],
        "tickvals": [value for value, _ in ticks],
        "ticktext": [text for _, text in ticks],
        "gridcolor": GRID,
        "linecolor": GRID,
        "zeroline": False,
        "title": {"text": axis.title, "font": {"size": 12}, "standoff": 8},
    }


def _place(value: float, axis: Axis) -> float:
    """Ranges and annotations on a log axis take the exponent."""
    return math.log10(value) if axis.is_log else value


def _level_line(level: ReferenceLine) -> dict[str, Any]:
    """Across the whole plot, or over its own stretch."""
    is_whole = level.start is None or level.end is None
    across = {"xref": "paper", "x0": 0, "x1": 1} if is_whole else {"x0": level.start, "x1": level.end}
    line = {"color": BAD if level.is_limit else DIM, "width": 1.5, "dash": "dash" if level.is_limit else "solid"}
    return {"type": "line", **across, "y0": level.value, "y1": level.value, "line": line}


def _level_texts(plot: Plot) -> list[dict[str, Any]]:
    """Where the SVG has them: words of lines close by stand side by side."""
    levels, drawn = sorted(plot.levels, key=lambda level: level.value), draw_plot(plot, WIDE).levels
    shifts = [float(drawing.text_x) - float(drawing.start) for drawing in drawn]
    pairs = zip(levels, shifts, strict=True)
    return [_level_text(level, shift, plot) for level, shift in pairs if level.text]


def _level_text(level: ReferenceLine, shift_pixels: float, plot: Plot) -> dict[str, Any]:
    where = {"xref": "paper", "x": 0} if level.start is None else {"x": level.start}
    return {
        **where,
        "xshift": shift_pixels,
        "yshift": 0 if level.is_limit else MEDIAN_RISE - LIMIT_RISE,
        "y": _place(level.value, plot.y),
        "text": level.text,
        "showarrow": False,
        "xanchor": "left",
        "yanchor": "bottom",
        "font": {"color": BAD_TEXT if level.is_limit else TEXT},
    }


def _mark_line(mark: Annotation) -> dict[str, Any]:
    line = {"color": WARN if mark.is_step else DIM, "width": 1.5 if mark.is_step else 1, "dash": "dot"}
    return {"type": "line", "x0": mark.x, "x1": mark.x, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def _mark_texts(plot: Plot) -> list[dict[str, Any]]:
    """Those that have room, which the SVG found out."""
    marks, drawn = sorted(plot.marks, key=lambda mark: mark.x), draw_plot(plot, WIDE).marks
    return [_mark_text(mark, plot) for mark, drawing in zip(marks, drawn, strict=True) if drawing.text]


def _mark_text(mark: Annotation, plot: Plot) -> dict[str, Any]:
    return {
        "x": _place(mark.x, plot.x),
        "yref": "paper",
        "y": 1 if mark.is_step else 0,
        "text": mark.text,
        "bgcolor": CARD,
        "showarrow": False,
        "yanchor": "bottom",
        "font": {"color": WARN if mark.is_step else DIM},
    }
