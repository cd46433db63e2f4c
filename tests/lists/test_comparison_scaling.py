"""Trainings on several GPUs beside one GPU alone: how well they scale."""

from dataclasses import replace
from typing import Any

import pytest

from analysis.lists.comparison.compared_run import ComparedRun
from analysis.lists.comparison.metrics import Cell
from analysis.lists.comparison.scaling import figure_rows
from tests.factories import make_spec
from tests.lists.test_comparison_metrics import timed

ALONE = timed(96, 100, 104)


def on_ranks(ranks: int, low: float, value: float, high: float, **settings: Any) -> ComparedRun:
    trained = make_spec(**settings).to_dict() | {"ranks": ranks, "strategy": "ddp"}
    spec = {"command": ["python"], "model": "bert-tiny, ddp", "catalogue": trained}
    found = timed(low, value, high, spec=spec)
    assert found.outcome is not None
    return replace(found, outcome=replace(found.outcome, ranks=ranks))


def shares(*subjects: ComparedRun) -> list[Cell]:
    rows = figure_rows(subjects, subjects[0])
    return next((list(row.cells) for row in rows if row.key == "scaling_efficiency"), [])


def test_without_a_run_of_several_gpus_there_is_no_such_row() -> None:
    assert shares(ALONE, timed(90, 95, 99)) == []


def test_the_efficiency_is_the_speed_of_each_gpu_beside_one_alone_with_the_widest_interval() -> None:
    alone, several = shares(ALONE, on_ranks(2, 150, 160, 170))
    assert (alone.value, alone.text) == (None, "–")
    assert several.interval == pytest.approx((75 / 104, 85 / 96))
    assert several.text == "72 to 89 %"


def test_another_training_alone_says_nothing_of_how_this_one_scales() -> None:
    assert shares(ALONE, on_ranks(2, 150, 160, 170, precision="bf16"))[1].value is None


def test_without_one_gpu_alone_no_efficiency_is_claimed() -> None:
    found = shares(on_ranks(2, 150, 160, 170), on_ranks(4, 300, 320, 340))
    assert [cell.text for cell in found] == ["not measured"] * 2
