"""A CPU that was measured with several memory limits has one column; each cell shows the largest limit that has one."""

import pytest

from analysis.lists.matrix.marks import join_limits
from analysis.lists.matrix.table import CardColumn, ShownCell, WorkloadRow
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
