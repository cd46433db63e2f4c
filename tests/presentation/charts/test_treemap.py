"""Sizes as rectangles: each has its share of the area, and none covers another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.presentation.filled_memory import ASPECT, tiles

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
