"""Steps in a series: found where they are, and not where chance or an outlier only looks like one."""

import random

import pytest

from analysis.lists.trend.step_detection import Stretch, find_steps, find_stretches

Values = list[float]


def steps(values: Values, grain: float = 0.0) -> list[tuple[int, float]]:
    return [(step.index, round(step.fraction, 3)) for step in find_steps(find_stretches(values, grain))]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([5.0], []),
        ([100.0] * 20, []),
        ([100.0] * 4 + [106.0] * 4, [(4, 0.06)]),
        ([100.0] * 4 + [106.0] * 3, []),
        ([100.0] * 3 + [106.0] * 9, []),
        ([100.0] * 4 + [102.0] * 4, []),
        ([100.0] * 6 + [95.0] * 6, [(6, -0.05)]),
        ([100.0] * 5 + [150.0] + [100.0] * 5, []),
        ([100.0] * 5 + [110.0] * 5 + [100.0] * 5, [(5, 0.1), (10, -0.091)]),
        ([100.0] * 4 + [102.0] * 4 + [104.0] * 4, [(8, 0.04)]),
    ],
)
def test_a_step_has_more_than_three_points_on_each_side_and_passes_the_threshold(values, expected) -> None:
    assert steps(values) == expected


def test_a_step_stays_where_it_is_beside_an_outlier() -> None:
    assert steps([38.0] * 7 + [39.0, 38.0] + [41.0] * 8) == [(9, 0.079)]


def test_one_sample_up_and_down_is_the_grain_of_a_batch_size() -> None:
    assert steps([25.0, 26.0, 25.0, 25.0, 26.0, 25.0, 25.0, 25.0, 26.0, 26.0, 25.0, 26.0], grain=1) == []


@pytest.mark.parametrize("seed", range(8))
def test_noise_alone_makes_no_step_and_hides_none(seed: int) -> None:
    noise = random.Random(seed)
    flat = [noise.gauss(100, 1) for _ in range(60)]
    assert steps(flat) == []
    risen = [value * (1.06 if index >= 30 else 1) for index, value in enumerate(flat)]
    ((index, fraction),) = steps(risen)
    assert abs(index - 30) <= 1
    assert fraction == pytest.approx(0.06, abs=0.01)


def test_stretches_cover_the_series_without_a_gap() -> None:
    values = [100.0] * 5 + [110.0] * 5
    assert find_stretches(values) == [Stretch(0, 5, 100.0), Stretch(5, 10, 110.0)]
