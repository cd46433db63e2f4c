"""No text covers a text, a line or a point, whatever is drawn; and what matters is said wherever there is room."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.presentation.charts import NARROW, WIDE, Plot, draw, memory_plot, speed_plot
from analysis.presentation.charts.axes import change_axis, time_axis
from analysis.presentation.charts.drawing import Drawing, Size
from analysis.presentation.charts.labels import Box, Room, label_at, text_width
from analysis.presentation.charts.plots import (
    Annotation,
    PlotPoint,
    PointLabel,
    ReferenceLine,
    SeriesStyle,
    Table,
    Trace,
)
from engine.results.result import Outcome, Probe
from engine.text.units import GIB

SIZES = st.sampled_from([WIDE, NARROW])
DAY = 86_400
EXAMPLES = settings(max_examples=60, deadline=None, derandomize=True)


def faults(drawing: Drawing) -> list[tuple[str, str]]:
    texts = (*drawing.x_ticks, *drawing.y_ticks, *drawing.titles, *drawing.texts)
    picture = Box(0, 0, drawing.size.width, drawing.size.height)
    found = [(one.text, other.text) for one, other in combinations(texts, 2) if one.box.overlaps(other.box)]
    found += [(text.text, "outside") for text in texts if text.box.left < 0 or not picture.holds(_printed(text.box))]
    for text in texts:
        found += [(text.text, "a point") for shape in drawing.places.shapes if text.box.overlaps(shape)]
        lines = [line for line in drawing.places.lines if not _is_leader_of(text.leader, line)]
        found += [(text.text, "a line") for line in lines if text.box.is_crossed_by(line)]
    return found


def _printed(box: Box) -> Box:
    """Without the air that a tick's box has on its right."""
    return Box(box.left, box.top, box.right - 6, box.bottom)


def _is_leader_of(path: str, line: tuple[tuple[float, float], tuple[float, float]]) -> bool:
    (x0, y0), (x1, y1) = line
    return path == f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"


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
@given(runs(), SIZES)
def test_no_text_of_a_runs_charts_covers_anything(plots: list[Plot], size: Size) -> None:
    assert [fault for plot in plots for fault in faults(draw(plot, size))] == []


@st.composite
def trends(draw_value: st.DrawFn) -> Plot:
    """A figure over days, with stretches, steps and versions."""
    days = sorted(draw_value(st.sets(st.integers(0, 400), min_size=1, max_size=40)))
    changes = [draw_value(st.floats(-0.5, 0.5)) for _ in days]
    dots = tuple(PlotPoint(day * DAY, change, "") for day, change in zip(days, changes, strict=True))
    cuts = sorted({0, *draw_value(st.sets(st.integers(0, len(days) - 1), max_size=3))})
    ends = [*(cut - 1 for cut in cuts[1:]), len(days) - 1]
    levels = tuple(
        ReferenceLine(changes[cut], "1.25 GiB", is_limit=False, start=dots[cut].x, end=dots[end].x)
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
@given(trends(), SIZES)
def test_no_text_of_a_trend_covers_anything(plot: Plot, size: Size) -> None:
    drawing = draw(plot, size)
    marks = {mark.text for mark in plot.marks}
    assert [(text, what) for text, what in faults(drawing) if not (text in marks and what == "a line")] == []


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=lambda size: size.name)
@pytest.mark.parametrize("largest", [60, 421, 4096])
def test_everything_is_said_on_the_chart_of_an_ordinary_run(size: Size, largest: int) -> None:
    sizes = sorted({*(2**power for power in range(12) if 2**power < largest), largest - largest // 20, largest})
    probes = [Probe(at, Outcome.FITS, peak_allocated_bytes=GIB + at * GIB // 16) for at in sizes]
    probes += [Probe(largest + 1, Outcome.OUT_OF_MEMORY), Probe(2 * largest, Outcome.OUT_OF_MEMORY)]
    roles = {"recommended": largest - largest // 20, "fastest": largest, "largest": largest, "current": 16}
    plot = memory_plot(probes, limit_bytes=GIB + largest * GIB // 16 + 1, roles=roles)
    assert plot is not None
    said = {text.text for text in draw(plot, size).texts}
    assert said == {*(level.text for level in plot.levels), *(label.text for label in plot.labels)}


def test_a_label_without_a_free_place_is_left_out_rather_than_printed_over_another() -> None:
    room = Room(Box(0, 0, 60, 40))
    placed = [room.place_beside("1.25 GiB", (30, 20)) for _ in range(9)]
    assert placed[0] is not None
    assert placed[-1] is None


def test_a_label_that_moved_away_has_a_leader_that_crosses_no_other_label() -> None:
    room = Room(Box(0, 0, 300, 200), shapes=[Box(50, 40, 250, 160)])
    texts = [room.place_beside(f"label {number}", (150, 100)) for number in range(6)]
    assert all(text is not None and text.leader is not None for text in texts)
    crossed = [
        (one, other) for one in texts for other in texts if one and other and one is not other and one.leader
        if other.box.is_crossed_by(one.leader)
    ]  # fmt: skip
    assert crossed == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (((0, 0), (20, 20)), True),
        (((0, 15), (30, 15)), True),
        (((0, 0), (9, 30)), False),
        (((0, 30), (9.9, 10)), False),
        (((12, 12), (13, 13)), True),
        (((10, 0), (10, 30)), False),
    ],
)
def test_a_line_crosses_a_box_only_where_it_runs_through_it(line, expected) -> None:
    assert Box(10, 10, 20, 20).is_crossed_by(line) is expected


def test_a_box_is_as_wide_as_its_widest_font() -> None:
    assert text_width("mmm") > text_width("iii")
    assert text_width("use 8", is_bold=True) > text_width("use 8")
    box = label_at("8", 10, 10, "end").box
    assert box.right == 10
