"""A CPU's one column of the matrix, its fastest and cheapest cards; and steps in a series, found where they are."""

import random

import pytest

from analysis.lists.matrix.table import CardColumn, ShownCell, WorkloadRow, cheapest, fastest, join_limits
from analysis.lists.trend.step_detection import Stretch, find_steps, find_stretches
from analysis.models import MatrixCell
from engine.text.units import MIB


def column(name: str, limit: int, *, is_cpu: bool = True) -> CardColumn:
    return CardColumn(f"{name} limited to {limit} MiB", name, limit * MIB, None, False, is_cpu)


SMALL, LARGE, OTHER = column("EPYC", 128), column("EPYC", 256), column("Xeon", 64)
T4 = CardColumn("t4", "T4", 1024 * MIB, None, False)


def row(*cells: ShownCell) -> WorkloadRow:
    return WorkloadRow("bert", "BERT", "128 tokens", 1, cells)


def test_each_cpu_has_one_column_and_gpus_stay() -> None:
    cards, _ = join_limits([SMALL, LARGE, OTHER, T4], [])
    assert [(card.short_name, card.memory) for card in cards] == [
        ("EPYC", "2 limits"),
        ("Xeon", "limit 64 MiB"),
        ("T4", "1.0 GiB"),
    ]


@pytest.mark.parametrize(("has_large", "shown"), [(True, "limit 256 MiB"), (False, "limit 128 MiB")])
def test_a_cell_is_that_of_the_largest_limit_that_was_measured(has_large: bool, shown: str) -> None:
    cells = ShownCell(SMALL, MatrixCell()), ShownCell(LARGE, MatrixCell() if has_large else None)
    _, (joined,) = join_limits([SMALL, LARGE], [row(*cells)])
    assert [cell.card.memory for cell in joined.cells] == [shown]


def test_a_card_alone_is_neither_the_fastest_nor_the_cheapest() -> None:
    assert fastest({"a": 10.0, "b": None}) == set()
    assert cheapest({"a": 10.0, "b": None}) == set()


def test_the_best_is_marked_and_what_is_within_the_noise_as_well() -> None:
    assert fastest({"a": 100.0, "b": 98.0, "c": 96.0}) == {"a", "b"}
    assert cheapest({"a": 1.0, "b": 1.02, "c": 1.1}) == {"a", "b"}


def test_a_free_card_is_the_cheapest() -> None:
    assert cheapest({"a": 0.0, "b": 0.1}) == {"a"}


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
