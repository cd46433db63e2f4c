"""No text covers a text, a line or a point, whatever is drawn; and what matters is said wherever there is room."""

import math
from itertools import combinations, pairwise
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.charts.axes import change_axis, time_axis
from analysis.charts.curves import memory_plot, speed_plot
from analysis.charts.drawing import HEIGHT, WIDTH
from analysis.charts.labels import Box, Label, Room, beside, text_width
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
from engine.facts.result import Outcome, Probe
from engine.text.units import GIB
from tests.charts.drawn import drawn, places, words

DAY = 86_400
EXAMPLES = settings(max_examples=60, deadline=None, derandomize=True)
EDGE, ROUNDING = 3, 0.1
"""Units of a text's box around its letters, which a line may touch; and what a coordinate is rounded to."""


def boxes(drawing: Element) -> list[tuple[str, Box]]:
    """Return the texts with the room that they take on a phone."""
    return [
        (text.text or "", Label(text.text or "", x, y, text.get("class", ""), text.get("text-anchor", "")).box)
        for text in drawing.iter("text")
        for x, y in [(float(text.get("x", "")), float(text.get("y", "")))]
    ]


def lines(drawing: Element) -> list[tuple[float, float]]:
    """Return the lines of the traces, the levels and the marks as points that lie close by each other."""
    found = []
    for line in drawing.iter("polyline"):
        if line.get("class") in ("gridline", "axis", "leader"):
            continue
        ends = [tuple(map(float, pair.split(","))) for pair in line.get("points", "").split()]
        for (x0, y0), (x1, y1) in pairwise(ends):
            steps = math.ceil(math.dist((x0, y0), (x1, y1)) / 2) or 1
            found += [(x0 + (x1 - x0) * at / steps, y0 + (y1 - y0) * at / steps) for at in range(steps + 1)]
    return found


def faults(plot: Plot) -> list[tuple[str, str]]:
    drawing = drawn(plot)
    texts, picture = boxes(drawing), Box(-ROUNDING, 0, WIDTH + ROUNDING, HEIGHT)
    found = [(one, other) for (one, a), (other, b) in combinations(texts, 2) if a.overlaps(b)]
    found += [(text, "outside") for text, box in texts if not picture.holds(box)]
    marks = [*places(drawing, "dot"), *places(drawing, "cross")]
    found += [(text, "a point") for text, box in texts for x, y in marks if box.overlaps(Box(x, y, x, y))]
    named = [(text, box) for text, box in texts if text not in {mark.text for mark in plot.marks}]
    drawn_lines = lines(drawing)
    for text, box in named:
        letters = Box(box.left + EDGE, box.top + EDGE, box.right - EDGE, box.bottom - EDGE)
        found += [(text, "a line") for x, y in drawn_lines if letters.overlaps(Box(x, y, x, y))]
    return found


@st.composite
def runs(draw_value: st.DrawFn) -> list[Plot]:
    """The two charts of a run: memory that rises, speeds that wander, the answer anywhere among them."""
    sizes = sorted(draw_value(st.sets(st.integers(1, 20_000), min_size=1, max_size=14)))
    base, slope = draw_value(st.integers(1, 8 * GIB)), draw_value(st.integers(1, GIB // 16))
    speeds = st.floats(0.01, 1e5)
    probes = [
        Probe(size, Outcome.FITS, peak_allocated_bytes=base + slope * size, samples_per_second=draw_value(speeds))
        for size in sizes
    ]
    refused = [Probe(size + 1, Outcome.OUT_OF_MEMORY) for size in sizes[-1:] if draw_value(st.booleans())]
    role = st.sampled_from([None, *sizes])
    roles = {name: draw_value(role) for name in ("recommended", "fastest", "largest", "current")}
    room = draw_value(st.floats(1.0, 3.0))
    limit = int((base + slope * sizes[-1]) * room) if draw_value(st.booleans()) else None
    intervals = [(size, 0.9 * probe.samples_per_second, 1.2 * probe.samples_per_second) for size, probe in
                 zip(sizes[::3], probes[::3], strict=True)]  # fmt: skip
    memory = memory_plot([*probes, *refused], limit_bytes=limit, roles=roles)
    speed = speed_plot(probes, roles=roles, intervals=intervals)
    assert memory is not None
    assert speed is not None
    return [memory, speed]


@EXAMPLES
@given(runs())
def test_no_text_of_a_runs_charts_covers_anything(plots: list[Plot]) -> None:
    assert [fault for plot in plots for fault in faults(plot)] == []


@st.composite
def trends(draw_value: st.DrawFn) -> Plot:
    """A figure over days, with stretches, steps and versions."""
    days = sorted(draw_value(st.sets(st.integers(0, 400), min_size=1, max_size=40)))
    changes = [draw_value(st.floats(-0.5, 0.5)) for _ in days]
    dots = tuple(PlotPoint(day * DAY, change, "") for day, change in zip(days, changes, strict=True))
    cuts = sorted({0, *draw_value(st.sets(st.integers(0, len(days) - 1), max_size=3))})
    ends = [*(cut - 1 for cut in cuts[1:]), len(days) - 1]
    levels = tuple(
        ReferenceLine(changes[cut], "1.25 GiB", look="median", start=dots[cut].x, end=dots[end].x)
        for cut, end in zip(cuts, ends, strict=True)
    )
    steps = tuple(Annotation(dots[cut].x - DAY / 2, "+12.5 %", is_step=True) for cut in cuts[1:])
    versions = tuple(Annotation(dot.x, str(number)) for number, dot in enumerate(dots[::4], start=1))
    return Plot(
        key="trend",
        title="Trend",
        sentence="",
        x=time_axis(dot.x for dot in dots),
        y=change_axis(changes, title="change against the first stretch"),
        traces=(Trace("trend", SeriesStyle.of(0), dots),),
        table=Table((), ()),
        levels=levels,
        marks=(*versions, *steps),
        labels=(PointLabel(dots[-1].x, dots[-1].y, "1.31 GiB"),),
    )


@EXAMPLES
@given(trends())
def test_no_text_of_a_trend_covers_anything(plot: Plot) -> None:
    assert faults(plot) == []


@pytest.mark.parametrize("largest", [60, 421, 4096])
def test_everything_is_said_on_the_chart_of_an_ordinary_run(largest: int) -> None:
    sizes = sorted({*(2**power for power in range(12) if 2**power < largest), largest - largest // 20, largest})
    probes = [Probe(at, Outcome.FITS, peak_allocated_bytes=GIB + at * GIB // 16) for at in sizes]
    probes += [Probe(largest + 1, Outcome.OUT_OF_MEMORY), Probe(2 * largest, Outcome.OUT_OF_MEMORY)]
    roles = {"recommended": largest - largest // 20, "fastest": largest, "largest": largest, "current": 16}
    plot = memory_plot(probes, limit_bytes=GIB + largest * GIB // 16 + 1, roles=roles)
    assert plot is not None
    assert {*(level.text for level in plot.levels), *(label.text for label in plot.labels)} <= set(words(drawn(plot)))


def test_a_label_without_a_free_place_is_left_out_rather_than_printed_over_another() -> None:
    room, inside = Room(), Box(0, 0, 80, 60)
    placed = [room.place(beside("1.25 GiB", (40, 40), "label-mark", inside), inside) for _ in range(9)]
    assert placed[0] is not None
    assert placed[-1] is None


def test_a_box_is_as_wide_as_its_widest_font_and_wider_in_bold() -> None:
    assert text_width("mmm", 12) > text_width("iii", 12)
    plain, bold = (Label("use 8", 100, 10, look, "end").box for look in ("label-mark", "label-use"))
    assert bold.left < plain.left < plain.right == bold.right
