"""A curve as a plotly figure: a plain dict that static/js/charts.js draws over the SVG. Plotly is not imported.

Colours are written out here because plotly cannot read CSS classes; they are the tokens of static/css/memorymark.css.
"""

from __future__ import annotations

import math
from typing import Any

from analysis.presentation.charts.curves import Curve, MarkedPoint, Series
from analysis.presentation.charts.drawing import WIDE, Drawing, Text, draw
from analysis.presentation.charts.scales import binary_ticks, decimal_ticks

GO, BAD, BAD_TEXT, INFO = "#00ff88", "#ff4444", "#ff6b6b", "#56b4e9"
TEXT, DIM, CARD, GRID = "#ededed", "#a3a3a3", "#1a1a1a", "#2a2a2a"
X_TITLE = {"text": "batch size (log scale)", "font": {"size": 12}, "standoff": 8}
BASELINE_PIXELS = 4
"""How far under its baseline plotly puts a text that it aligns at the bottom."""
_LEADER = {"showarrow": True, "arrowhead": 0, "arrowwidth": 1, "arrowcolor": DIM, "standoff": 7}
_LABEL_COLOURS = {"label-use": GO, "label-mark": TEXT, "label-refused": BAD_TEXT}
_COLOURS = {"line-memory": GO, "line-speed": INFO, "line-allocated": DIM, "line-estimated": INFO}


def figure(curve: Curve, drawing: Drawing | None = None) -> dict[str, Any]:
    """Data and layout; figures in base units, their text beside them for the pointer.

    `drawing` is the wide one, where it was made already: the labels stand where it has them.
    """
    traces = [_line(series, curve) for series in curve.series]
    if curve.intervals:
        traces.append(_intervals(curve))
    if curve.refused:
        traces.append(_refused(curve))
    if curve.marks:
        traces.append(_marks(curve))
    return {"data": traces, "layout": _layout(curve, drawing or draw(curve, WIDE))}


def _line(series: Series, curve: Curve) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": series.name,
        "x": [size for size, _ in series.points],
        "y": [value for _, value in series.points],
        "customdata": [curve.value_text(value) for _, value in series.points],
        "hovertemplate": f"batch %{{x}}: %{{customdata}}{curve.unit}<extra></extra>",
        "line": {
            "color": _COLOURS[series.css_class],
            "width": 2.5 if series is curve.main else 1.5,
            "dash": "solid" if series is curve.main else "dot",
        },
        "marker": {"size": 7 if series is curve.main else 4},
    }


def _intervals(curve: Curve) -> dict[str, Any]:
    values = dict(curve.main.points)
    known = [(size, values[size], low, high) for size, low, high in curve.intervals if size in values]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "95 % interval",
        "x": [size for size, *_ in known],
        "y": [value for _, value, *_ in known],
        "hoverinfo": "skip",
        "marker": {"size": 1, "color": INFO},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [high - value for _, value, _, high in known],
            "arrayminus": [value - low for _, value, low, _ in known],
            "color": INFO,
            "thickness": 1.5,
            "width": 4,
        },
    }


def _refused(curve: Curve) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "Out of memory",
        "x": list(curve.refused),
        "y": [_top(curve)] * len(curve.refused),
        "hovertemplate": "batch %{x}: out of memory<extra></extra>",
        "marker": {"symbol": "x-thin", "size": 13, "color": BAD, "line": {"color": BAD, "width": 2.5}},
    }


def _marks(curve: Curve) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "Of the answer",
        "x": [mark.batch_size for mark in curve.marks],
        "y": [mark.value for mark in curve.marks],
        "hoverinfo": "skip",
        "marker": {
            "symbol": "circle-open",
            "size": 14,
            "line": {"width": 2},
            "color": [_mark_colour(mark) for mark in curve.marks],
        },
    }


def _mark_colour(mark: MarkedPoint) -> str:
    return GO if mark.is_recommended else TEXT


def _top(curve: Curve) -> float:
    measured = max(value for series in curve.series for _, value in series.points)
    return measured if curve.limit is None else curve.limit


def _layout(curve: Curve, drawing: Drawing) -> dict[str, Any]:
    top = max(_top(curve), max(value for _, value in curve.main.points))
    ticks = binary_ticks(top) if curve.key == "memory" else decimal_ticks(top)
    axis = {"gridcolor": GRID, "linecolor": GRID, "zeroline": False, "fixedrange": False}
    layout: dict[str, Any] = {
        "height": 330,
        "margin": {"l": 62, "r": 18, "t": 40, "b": 46},
        "paper_bgcolor": CARD,
        "plot_bgcolor": CARD,
        "font": {"color": DIM, "family": "Inter, system-ui, sans-serif", "size": 12},
        "hovermode": "x",
        "showlegend": False,
        "annotations": [_label(text) for text in drawing.texts if text.batch_size],
        "xaxis": {**axis, "type": "log", "dtick": math.log10(2), "tickformat": ",d", "title": X_TITLE},
        "yaxis": {
            **axis,
            "range": [0, top * 1.12],
            "tickvals": ticks,
            "ticktext": [curve.tick_text(value) for value in ticks],
        },
    }
    if curve.limit is not None:
        layout["shapes"] = [_limit_line(curve.limit)]
        layout["annotations"].append(_limit_label(curve, curve.limit))
    return layout


def _label(text: Text) -> dict[str, Any]:
    """A label where the SVG has it: as far from its point, in pixels."""
    dx, dy = text.offset
    where: dict[str, Any] = {"showarrow": False, "xshift": dx, "yshift": -dy - BASELINE_PIXELS}
    if text.leader:
        where = {**_LEADER, "ax": dx, "ay": dy}
    return {
        "x": math.log10(text.batch_size or 1),  # annotations on a log axis take the exponent
        "y": text.value,
        "text": text.text,
        **where,
        "xanchor": {"start": "left", "middle": "center", "end": "right"}[text.anchor],
        "yanchor": "bottom",
        "font": {"color": _LABEL_COLOURS[text.css_class]},
    }


def _limit_line(limit: float) -> dict[str, Any]:
    line = {"color": BAD, "width": 1.5, "dash": "dash"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": limit, "y1": limit, "line": line}


def _limit_label(curve: Curve, limit: float) -> dict[str, Any]:
    return {
        "xref": "paper",
        "x": 0,
        "y": limit,
        "text": f"limit {curve.tick_text(limit)}",
        "showarrow": False,
        "xanchor": "left",
        "yanchor": "bottom",
        "font": {"color": BAD_TEXT},
    }
