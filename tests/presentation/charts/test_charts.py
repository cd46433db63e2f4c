"""Charts are pure: probes in, coordinates out. What is drawn is what was measured."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from analysis.presentation.charts import (
    NARROW,
    WIDE,
    MemoryBar,
    draw,
    memory_bars,
    memory_curve,
    memory_stack,
    throughput_curve,
)
from analysis.presentation.charts.drawing import Drawing, Size
from analysis.presentation.charts.labels import Box, place, text_box
from analysis.presentation.charts.scales import binary_ticks, decimal_ticks, log2_scale, power_of_two_ticks
from engine.result import MemoryByKind, Outcome, Probe, Purpose, Waste
from engine.units import GIB

LIMIT = 40 * GIB
ROLES = {"recommended": 384, "fastest": 421, "largest": 421, "current": 16}


def fits(batch_size: int, *, purpose: Purpose = Purpose.SEARCH, memory_bytes: int | None = None) -> Probe:
    memory, speed = memory_bytes or 2 * GIB + batch_size * GIB // 12, 1000 - 900 / batch_size
    return Probe(batch_size, Outcome.FITS, purpose, peak_allocated_bytes=memory, samples_per_second=speed)


def refused(batch_size: int) -> Probe:
    return Probe(batch_size, Outcome.OUT_OF_MEMORY)


PROBES = [*(fits(size) for size in (1, 16, 64, 128, 256, 384, 421)), refused(512), refused(422)]


def memory_drawing(size: Size = WIDE) -> Drawing:
    curve = memory_curve(PROBES, limit_bytes=LIMIT, roles=ROLES)
    assert curve is not None
    return draw(curve, size)


def test_every_out_of_memory_is_a_cross_on_the_limit_line() -> None:
    drawing = memory_drawing()
    assert len(drawing.crosses) == 2
    assert {y for _, y in drawing.crosses} == {drawing.limit_at}


def test_only_sizes_that_were_run_are_on_the_line() -> None:
    assert len(memory_drawing().lines[0].dots) == 7


def test_each_doubling_takes_the_same_width() -> None:
    x = log2_scale([1, 16], 0, 400)
    assert [x(size) for size in (1, 2, 4, 8, 16)] == [0, 100, 200, 300, 400]


def test_a_single_size_stands_in_the_middle() -> None:
    assert log2_scale([8], 0, 100)(8) == 50


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=lambda size: size.name)
def test_labels_neither_overlap_nor_leave_the_picture(size: Size) -> None:
    texts = memory_drawing(size).texts
    boxes = [text_box(text.text, float(text.x), float(text.y), text.anchor) for text in texts]
    assert all(box.left >= 0 and box.right <= size.width and box.top >= 0 for box in boxes)
    assert [pair for pair in combinations(boxes, 2) if pair[0].overlap(pair[1]) > 0] == []


def test_a_crowded_label_moves_aside() -> None:
    first, second = place([("one", (50, 50)), ("two", (52, 50))], [], Box(0, 0, 100, 100))
    assert first.box.overlap(second.box) == 0


def test_roles_of_one_size_share_a_label() -> None:
    assert "fastest 421, largest" in [text.text for text in memory_drawing().texts]


def test_the_smallest_refused_size_is_named() -> None:
    texts = [text.text for text in memory_drawing().texts]
    assert "422 out of memory" in texts
    assert "512 out of memory" not in texts


def test_the_sentence_reads_the_chart_out() -> None:
    curve = memory_curve(PROBES, limit_bytes=LIMIT, roles=ROLES)
    assert curve is not None
    assert curve.sentence == (
        "Peak memory goes from 2.1 GiB at batch 1 to 37.1 GiB at batch 421. The limit is 40 GiB. "
        "Batch 422 ran out of memory."
    )


def test_a_soak_does_not_replace_the_first_measurement() -> None:
    probes = [fits(16, memory_bytes=4 * GIB), fits(16, memory_bytes=5 * GIB, purpose=Purpose.SOAK)]
    curve = memory_curve(probes, limit_bytes=None, roles={})
    assert curve is not None
    assert curve.main.points == ((16, 4 * GIB),)


def test_where_memory_is_reserved_both_lines_are_drawn() -> None:
    probe = Probe(4, Outcome.FITS, peak_allocated_bytes=3 * GIB, peak_reserved_bytes=4 * GIB)
    curve = memory_curve([probe], limit_bytes=None, roles={})
    assert curve is not None
    assert [series.points for series in curve.series] == [((4, 3 * GIB),), ((4, 4 * GIB),)]


def test_without_a_measured_size_there_is_no_chart() -> None:
    assert memory_curve([refused(1)], limit_bytes=LIMIT, roles={}) is None
    assert throughput_curve([Probe(1, Outcome.FITS)], roles={}) is None


def test_the_table_says_what_was_not_measured() -> None:
    curve = memory_curve(PROBES, limit_bytes=LIMIT, roles=ROLES)
    assert curve is not None
    assert (422, ["not measured"], "out of memory") in curve.rows


def test_speed_marks_are_the_measured_speeds() -> None:
    curve = throughput_curve(PROBES, roles=ROLES)
    assert curve is not None
    measured = {probe.batch_size: probe.samples_per_second for probe in PROBES}
    assert {mark.batch_size: mark.value for mark in curve.marks} == {size: measured[size] for size in (384, 421, 16)}


def test_intervals_are_drawn_around_their_points_and_fit_into_the_picture() -> None:
    plain = throughput_curve(PROBES, roles=ROLES)
    assert plain is not None
    (size, speed), top = plain.main.points[-1], max(value for _, value in plain.main.points)
    curve = throughput_curve(PROBES, roles=ROLES, intervals=((size, speed * 0.9, top * 2),))
    assert curve is not None
    drawing = draw(curve, WIDE)
    lower, upper = (float(y) for y in re.findall(r"[\d.]+ ([\d.]+)V([\d.]+)", drawing.bars[0])[0])
    dots = dict(zip((size for size, _ in curve.main.points), drawing.lines[-1].dots, strict=True))
    assert drawing.top <= upper < float(dots[size][1]) < lower


@pytest.mark.parametrize(
    ("highest", "expected"), [(40 * GIB, 8 * GIB), (512 * 2**20, 128 * 2**20), (79 * GIB, 16 * GIB), (5, 1)]
)
def test_memory_ticks_are_a_power_of_two_apart(highest: int, expected: int) -> None:
    assert binary_ticks(highest)[1] == expected


@pytest.mark.parametrize(("highest", "expected"), [(1000, 200), (9.8, 2), (0.4, 0.1), (61, 20)])
def test_speed_ticks_are_round(highest: float, expected: float) -> None:
    assert decimal_ticks(highest)[1] == pytest.approx(expected)


def test_size_ticks_thin_out_before_they_crowd() -> None:
    assert power_of_two_ticks([1, 600], at_most=6) == [1, 4, 16, 64, 256]


def waste(unused_bytes: int | None) -> Waste:
    return Waste(LIMIT, unused_bytes, None, None, None)


def bars(of: Waste, *, current_is_refused: bool) -> list[MemoryBar]:
    return memory_bars(waste=of, current_batch_size=16, current_is_refused=current_is_refused, recommended=None)


def test_todays_bar_shows_its_waste() -> None:
    (bar,) = bars(waste(30 * GIB), current_is_refused=False)
    assert (bar.used_bytes, bar.used_percent, bar.label) == (10 * GIB, "25.00%", "75.0 % unused")


def test_a_size_that_does_not_fit_has_no_used_memory() -> None:
    (bar,) = bars(waste(None), current_is_refused=True)
    assert (bar.used_bytes, bar.label) == (None, "✕ does not fit")


def test_a_size_that_was_not_tried_is_not_called_too_large() -> None:
    (bar,) = bars(waste(None), current_is_refused=False)
    assert (bar.used_bytes, bar.label) == (None, "not measured")


def test_the_split_covers_the_bar_exactly() -> None:
    stack = memory_stack(16, MemoryByKind(1 * GIB, 1 * GIB, 2 * GIB, 11 * GIB, 1 * GIB))
    assert stack is not None
    assert sum(piece.fraction for piece in stack.slices) == pytest.approx(1)
    assert stack.slices[3].x_percent == "25.000%"
