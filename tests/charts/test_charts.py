"""The charts of one run and the small ones are pure: what is drawn is what was measured."""

import re
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.charts.axes import binary_ticks, decimal_ticks
from analysis.charts.bars import MemoryBar, memory_bars, stack_of
from analysis.charts.curves import memory_plot, speed_plot
from analysis.charts.plots import Plot
from analysis.charts.sparkline import DATES_MAX, day_marks, line_over_runs, sparkline
from analysis.presentation.filled_memory import ASPECT, tiles
from analysis.runs.columns.result_columns import (
    POINTS_MAX,
    cost_per_million_samples_usd,
    measured_columns,
    memory_points,
)
from engine.estimate.gpus import gpus
from engine.estimate.types import EstimateAt
from engine.facts.result import Outcome, Point, Probe, Purpose, Waste
from engine.questions.documents.estimated import EstimatedCard
from engine.questions.documents.measured import Measured
from engine.settings.spec import RunSpec
from engine.text.units import GIB, MIB
from tests.charts.drawn import drawn, having, places, points, tooltips, words
from tests.factories import make_probe, make_refusal, make_result, make_result_that_does_not_fit
from tests.fake_engine import estimate_of

LIMIT = 40 * GIB
ROLES = {"recommended": 384, "fastest": 421, "largest": 421, "current": 16}


def fits(batch_size: int, *, purpose: Purpose = Purpose.SEARCH, memory_bytes: int | None = None) -> Probe:
    memory, speed = memory_bytes or 2 * GIB + batch_size * GIB // 12, 1000 - 900 / batch_size
    return Probe(batch_size, Outcome.FITS, purpose, peak_allocated_bytes=memory, samples_per_second=speed)


def refused(batch_size: int) -> Probe:
    return Probe(batch_size, Outcome.OUT_OF_MEMORY)


PROBES = [*(fits(size) for size in (1, 16, 64, 128, 256, 384, 421)), refused(512), refused(422)]


def memory(**options) -> Plot:
    plot = memory_plot(PROBES, **{"limit_bytes": LIMIT, "roles": ROLES, **options})
    assert plot is not None
    return plot


def speed(probes=PROBES, **options) -> Plot:
    plot = speed_plot(probes, **{"roles": ROLES, **options})
    assert plot is not None
    return plot


def test_every_out_of_memory_is_a_cross_on_the_limit_line() -> None:
    drawing = drawn(memory())
    (limit,) = {y for _, y in points(drawing, "limit")}
    assert [y for _, y in places(drawing, "cross")] == [limit] * 2


def test_only_sizes_that_were_run_are_on_the_line() -> None:
    assert len(places(drawn(memory()), "dot")) == 7


def test_roles_of_one_size_share_a_label() -> None:
    assert "fastest 421, largest" in words(drawn(memory()))


def test_the_smallest_refused_size_is_named() -> None:
    assert "422 out of memory" in words(drawn(memory()))
    assert "512 out of memory" not in words(drawn(memory()))


def test_the_last_point_has_its_figure_where_the_answer_does_not_name_it() -> None:
    assert "421: 37.1 GiB" in words(drawn(memory(roles={"current": 16})))
    assert "421: 998 samples/s" in words(drawn(speed(roles={})))


def test_the_sentence_reads_the_chart_out() -> None:
    assert memory().sentence == (
        "Peak memory goes from 2.1 GiB at batch 1 to 37.1 GiB at batch 421. The limit is 40 GiB. "
        "Batch 422 ran out of memory."
    )


def test_a_soak_does_not_replace_the_first_measurement() -> None:
    probes = [fits(16, memory_bytes=4 * GIB), fits(16, memory_bytes=5 * GIB, purpose=Purpose.SOAK)]
    plot = memory_plot(probes, limit_bytes=None, roles={})
    assert plot is not None
    assert [(dot.x, dot.y) for dot in plot.traces[0].dots] == [(16, 4 * GIB)]


def test_where_memory_is_reserved_both_lines_are_drawn() -> None:
    probe = Probe(4, Outcome.FITS, peak_allocated_bytes=3 * GIB, peak_reserved_bytes=4 * GIB)
    plot = memory_plot([probe], limit_bytes=None, roles={})
    assert plot is not None
    assert [[(dot.x, dot.y) for dot in trace.dots] for trace in plot.traces] == [[(4, 3 * GIB)], [(4, 4 * GIB)]]


def test_without_a_measured_size_there_is_no_chart() -> None:
    assert memory_plot([refused(1)], limit_bytes=LIMIT, roles={}) is None
    assert speed_plot([Probe(1, Outcome.FITS)], roles={}) is None


def test_the_table_says_what_was_not_measured() -> None:
    assert ("422", "out of memory", "") in memory().table.rows
    assert ("384", "34.0 GiB", "recommended 384") in memory().table.rows


def test_an_interval_is_a_bar_around_its_point_and_fits_into_the_picture() -> None:
    measured = {probe.batch_size: probe.samples_per_second for probe in PROBES}
    plot = speed(intervals=((421, measured[421] * 0.9, measured[421] * 2),))
    drawing = drawn(plot)
    (bar,) = having(drawing, "error-bar")
    x, lower, upper = map(float, re.findall(r"^M([\d.]+) ([\d.]+)L[\d.]+ ([\d.]+)", bar.get("d", ""))[0])
    assert places(drawing, "dot")[-1][0] == x
    assert 0 < upper < places(drawing, "dot")[-1][1] < lower
    assert "(898 to 1,996)" in tooltips(drawing)[-1]


def test_a_timing_that_was_not_steady_is_hollow_and_says_so() -> None:
    unsteady = replace(fits(64), timing_is_steady=False)
    drawing = drawn(speed([fits(16), unsteady], roles={}))
    assert [dot.get("class") for dot in having(drawing, "dot")] == ["dot", "dot is-hollow"]
    assert tooltips(drawing)[1].endswith("not steady")
    again = drawn(speed([fits(16), unsteady, replace(fits(64), timing_is_steady=True, step_seconds=0.1)], roles={}))
    assert [dot.get("class") for dot in having(again, "dot")] == ["dot", "dot"]


def test_one_timing_beside_sizes_with_intervals_is_hollow_and_no_line_passes_it_by() -> None:
    plot = speed(intervals=((16, 150.0, 170.0), (421, 990.0, 1010.0)))
    (trace,) = plot.traces
    assert {dot.x for dot in trace.dots if dot.is_hollow} == {dot.x for dot in trace.dots} - {16, 421}
    assert trace.strokes == []
    assert "timed once" in next(dot.text for dot in trace.dots if dot.is_hollow)
    assert "Hollow points were timed once or not steady" in plot.sentence


def test_a_single_timing_is_never_called_the_highest_beside_sizes_with_intervals() -> None:
    odd = [replace(fits(100), samples_per_second=9_999.0)]
    plot = speed([fits(16), *odd, fits(421)], intervals=((16, 150.0, 170.0), (421, 990.0, 1010.0)), roles={})
    assert "at batch 421, the highest measured" in plot.sentence


def estimate(*sizes: int) -> EstimatedCard:
    points = tuple(EstimateAt(size, size < 422, size * GIB, None, None, "", "", {}) for size in sizes)
    return replace(EstimatedCard.from_dict(estimate_of(RunSpec(model="bert"), gpus()["a10"])), at=points)


def test_estimates_are_joined_only_where_no_size_was_run_between_them() -> None:
    trace = next(trace for trace in memory(estimate=estimate(1, 8, 16, 421, 422)).traces if trace.is_predicted)
    assert [[dot.x for dot in stroke] for stroke in trace.strokes] == [[1, 8, 16], [421, 422]]


def test_an_estimate_is_drawn_hollow_and_never_called_measured() -> None:
    plot = memory(estimate=estimate(1, 421))
    assert plot.kinds == "measured and estimated"
    assert "is-estimate" in plot.traces[-1].css_class  # over the dots that were measured
    assert all(dot.text.endswith("estimated") for dot in plot.traces[-1].dots)


@pytest.mark.parametrize(
    ("highest", "expected"), [(40 * GIB, 8 * GIB), (512 * 2**20, 128 * 2**20), (79 * GIB, 16 * GIB), (5, 1)]
)
def test_memory_ticks_are_a_power_of_two_apart(highest: int, expected: int) -> None:
    assert binary_ticks(highest)[1] == expected


@pytest.mark.parametrize(("highest", "expected"), [(1000, 200), (9.8, 2), (0.4, 0.1), (61, 20)])
def test_speed_ticks_are_round(highest: float, expected: float) -> None:
    assert decimal_ticks(highest)[1] == pytest.approx(expected)


@pytest.mark.parametrize("highest", [1000, 9.8, 0.4, 61, 7 * GIB])
def test_the_last_tick_is_not_below_the_highest_value(highest: float) -> None:
    assert decimal_ticks(highest)[-2] < highest <= decimal_ticks(highest)[-1]
    assert binary_ticks(highest)[-1] >= highest


def waste(unused_bytes: int | None) -> Waste:
    return Waste(LIMIT, unused_bytes, None, None, None)


def bars(of: Waste, *, current_is_refused: bool) -> list[MemoryBar]:
    return memory_bars(waste=of, current_batch_size=16, current_is_refused=current_is_refused, recommended=None)


def test_todays_bar_shows_its_waste() -> None:
    (bar,) = bars(waste(30 * GIB), current_is_refused=False)
    assert (bar.used_bytes, bar.used_percent, bar.label) == (10 * GIB, "25.00%", "75.0 % unused")


@pytest.mark.parametrize(("unused", "is_waste"), [(30 * GIB, True), (5 * GIB, True), (GIB // 2, False)])
def test_only_much_unused_memory_is_shown_as_waste(unused: int, is_waste: bool) -> None:
    larger = Point(32, None, None, 40 * GIB, None, 40 * GIB)
    bar, _ = memory_bars(waste=waste(unused), current_batch_size=16, current_is_refused=False, recommended=larger)
    assert (bar.is_waste, bar.css_class) == (is_waste, "bar-waste" if is_waste else "bar-neutral")


def test_where_no_size_is_recommended_only_todays_is_called_waste() -> None:
    larger = Point(32, None, None, 38 * GIB, None, 38 * GIB)
    today, other = memory_bars(
        waste=waste(30 * GIB), current_batch_size=16, current_is_refused=False, recommended=None, with_reserve=larger
    )
    assert (today.title, today.css_class) == ("Today", "bar-waste")
    assert (other.title, other.batch_size, other.css_class) == ("Largest with reserve", 32, "bar-neutral")


def test_a_size_that_is_kept_has_one_bar_that_accuses_nobody() -> None:
    recommended = Point(16, None, None, 10 * GIB, None, 10 * GIB)
    (bar,) = memory_bars(
        waste=waste(30 * GIB), current_batch_size=16, current_is_refused=False, recommended=recommended
    )
    assert (bar.title, bar.css_class, bar.label) == ("Today and recommended", "bar-neutral", "75.0 % unused")


def test_a_size_that_does_not_fit_has_no_used_memory() -> None:
    (bar,) = bars(waste(None), current_is_refused=True)
    assert (bar.used_bytes, bar.label) == (None, "✕ does not fit")


def test_a_size_that_was_not_tried_is_not_called_too_large() -> None:
    (bar,) = bars(waste(None), current_is_refused=False)
    assert (bar.used_bytes, bar.label) == (None, "not measured")


def test_the_split_covers_the_bar_exactly() -> None:
    stack = stack_of(16, [(str(place), "", size * GIB) for place, size in enumerate((1, 1, 2, 11, 1))])
    assert stack is not None
    assert sum(piece.fraction for piece in stack.slices) == pytest.approx(1)
    assert stack.slices[3].x_percent == "25.000%"


def heights(picture: str) -> list[list[float]]:
    """Return how far below the top the points of each line are."""
    found = re.findall(r'points="([^"]+)"', picture)
    return [[float(pair.split(",")[1]) for pair in points.split()] for points in found]


def test_only_what_fitted_is_a_point():
    assert memory_points([make_probe(4), make_probe(8), make_refusal(9)]) == [[4, 400 * MIB], [8, 800 * MIB]]


def test_many_probes_are_thinned_with_both_ends_kept():
    points = memory_points([make_probe(size) for size in range(1, 40)])
    assert len(points) == POINTS_MAX
    assert (points[0][0], points[-1][0]) == (1, 39)


def test_the_line_ends_on_the_limit_when_all_of_it_is_used():
    limit, line = heights(sparkline([[1, GIB], [2, 2 * GIB], [4, 4 * GIB]], 4 * GIB, ""))
    assert line[0] > line[1] > line[2] == limit[0]


def test_a_result_says_what_lists_show():
    columns = measured_columns(Measured.of_answer(make_result()))
    assert columns["limit_bytes"] == GIB
    assert columns["memory_curve"] == [[4, 400 * MIB], [8, 800 * MIB]]
    assert columns["cost_per_million_samples_usd"] == 0.6 / (16 * 3600) * 1_000_000


def test_what_was_not_measured_costs_nothing_known():
    assert cost_per_million_samples_usd(0.6, None) is None
    assert measured_columns(Measured.of_answer(make_result_that_does_not_fit()))["memory_curve"] == []


def test_figures_over_runs_go_down_where_they_fall_and_look_flat_where_they_hardly_change() -> None:
    (fallen,) = heights(line_over_runs([40, 40, 20], ""))
    assert fallen[0] == fallen[1] < fallen[2]
    (hardly,) = heights(line_over_runs([100, 101], ""))
    assert 0 < hardly[0] - hardly[1] < (fallen[2] - fallen[0]) / 5


ROUNDING = 1e-4  # of a side of 100: the narrowest tiles are a part of 10^13 of the area
sizes_in_falling_order = st.lists(st.integers(1, 10**12), min_size=1, max_size=60).map(
    lambda sizes: sorted(sizes, reverse=True)
)


@given(sizes_in_falling_order)
def test_every_size_has_its_share_of_the_area(sizes):
    placed = tiles(sizes)
    assert sorted(tile.index for tile in placed) == list(range(len(sizes)))
    for tile in placed:
        share = tile.width * tile.height / 10_000
        assert share == pytest.approx(sizes[tile.index] / sum(sizes), rel=1e-6, abs=1e-9)


@given(sizes_in_falling_order)
def test_tiles_stay_within_the_picture_and_cover_none_of_another(sizes):
    placed = tiles(sizes)
    for one in placed:
        assert one.x >= -ROUNDING
        assert one.y >= -ROUNDING
        assert one.x + one.width <= 100 + ROUNDING
        assert one.y + one.height <= 100 + ROUNDING
        for other in placed:
            if other.index > one.index:
                side_by_side = one.x + one.width <= other.x + ROUNDING or other.x + other.width <= one.x + ROUNDING
                below = one.y + one.height <= other.y + ROUNDING or other.y + other.height <= one.y + ROUNDING
                assert side_by_side or below


def test_a_size_that_is_almost_nothing_beside_another_stays_in_the_picture():
    whole, crumb = tiles([10**12, 2])
    assert whole.x + whole.width <= crumb.x + ROUNDING
    assert crumb.y + crumb.height <= 100 + ROUNDING


def test_equal_sizes_are_near_squares():
    for tile in tiles([1] * 8):
        assert (tile.width * ASPECT) / tile.height == pytest.approx(1)


def test_nothing_has_no_tiles_and_zero_sizes_are_left_out():
    assert tiles([]) == tiles([0, 0]) == []
    assert [tile.index for tile in tiles([5, 0, 5])] == [0, 2]


@pytest.mark.parametrize("count", [1, 2, 7, 30, 90])
def test_a_few_days_are_named_at_their_bars_and_none_beside_today(count: int) -> None:
    days = [date(2026, 11, 27) - timedelta(days=count - 1 - place) for place in range(count)]
    *named, last = re.findall(r' x="([\d.]+)%"[^>]*>([^<]+)<', day_marks(days))
    assert last == ("100", "today")
    assert len(named) <= DATES_MAX
    for x, text in named:
        assert text == f"{days[int(float(x) / 100 * count)]:%d %b}".lstrip("0")
        assert float(x) < 90
