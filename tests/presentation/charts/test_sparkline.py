"""The small curve of a line: which points are kept, and where they are drawn."""

import re

from analysis.presentation.charts.sparkline import line_over_runs, sparkline
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
