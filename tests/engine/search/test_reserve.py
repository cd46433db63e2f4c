"""Which sizes keep the reserve, and where the largest of them is looked for."""

from engine.results.result import Point
from engine.search.reserve import edge_size, sizes_with_reserve


def points(memory: dict[int, int | None]) -> dict[int, Point]:
    return {size: Point(size, None, None, taken, None, taken) for size, taken in memory.items()}


def test_a_size_keeps_the_reserve_up_to_the_last_byte_of_what_is_allowed():
    assert sizes_with_reserve(points({1: 100, 8: 950, 9: 951}), 1000, 0.05) == {1, 8}


def test_where_none_keeps_it_sizes_that_take_as_little_as_the_smallest_are_as_good():
    assert sizes_with_reserve(points({1: 970, 16: 975, 64: 999}), 1000, 0.05) == {1, 16}


def test_the_edge_is_where_the_line_between_two_measured_sizes_meets_what_is_allowed():
    assert edge_size(points({1: 110, 50: 600, 99: 1090}), 1000, 0.05) == 85


def test_no_edge_is_looked_for_where_the_largest_keeps_the_reserve_or_a_measured_size_is_near():
    assert edge_size(points({1: 110, 50: 600}), 1000, 0.05) is None
    assert edge_size(points({500: 948, 600: 1000}), 1000, 0.05) is None


def test_a_size_whose_memory_is_unknown_is_no_evidence():
    assert sizes_with_reserve(points({1: 100, 4: None}), 1000, 0.05) == {1}
