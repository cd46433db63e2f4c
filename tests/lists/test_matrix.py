"""A CPU has one column of the matrix, with the largest limit; and which cards are the fastest and the cheapest."""

import pytest

from analysis.lists.matrix.marks import join_limits
from analysis.lists.matrix.table import CardColumn, ShownCell, WorkloadRow, cheapest, fastest
from analysis.models import MatrixCell
from engine.text.units import MIB


def column(name: str, limit: int, *, is_cpu: bool = True) -> CardColumn:
    return CardColumn(f"{name} limited to {limit} MiB", name, limit * MIB, None, False, is_cpu)


SMALL, LARGE, OTHER = column("EPYC", 128), column("EPYC", 256), column("Xeon", 64)
T4 = CardColumn("t4", "T4", 1024 * MIB, None, False)


def row(*cells: ShownCell) -> WorkloadRow:
    return WorkloadRow("bert", "BERT", "128 tokens", 1, "", cells)


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
