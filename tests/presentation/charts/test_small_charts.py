"""The small curve of a line, the rectangles of a treemap, and the dates below bars of days."""

import re
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.presentation.charts.sparkline import DATES_MAX, day_marks, line_over_runs, sparkline
from analysis.presentation.filled_memory import ASPECT, tiles
from analysis.runs.columns.result_columns import (
    POINTS_MAX,
    cost_per_million_samples_usd,
    measured_columns,
    memory_points,
)
from engine.documents.measured import Measured
from engine.text.units import GIB, MIB
from tests.factories import make_probe, make_refusal, make_result, make_result_that_does_not_fit


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
