"""Memory left unused, by person and by training: newest run of each setting, nothing invented for the others."""

from typing import Any

from analysis.lists.use.unused import MeasuredSetting, by_person, by_training
from analysis.runs.columns.series import SeriesKey
from engine.text.units import GIB


def found(person: str | None = "alice", training: str = "bert", **columns: Any) -> MeasuredSetting:
    setting = SeriesKey(training, columns.pop("gpu", "A100"), ())
    figures = {"unused_bytes": GIB, "limit_bytes": 4 * GIB, "saving_usd": None, "is_own": False, "device_id": 1}
    return MeasuredSetting(person=person, training=training, setting=setting, **{**figures, **columns})


def test_a_setting_that_was_measured_often_counts_once_by_its_newest_run() -> None:
    (row,) = by_person([found(unused_bytes=GIB), found(unused_bytes=3 * GIB)])
    assert (row.run_count, row.setting_count, row.unused_bytes, row.of_bytes) == (2, 1, GIB, 4 * GIB)


def test_who_leaves_most_unused_stands_first() -> None:
    rows = by_person([found("bob"), found("alice"), found("alice", gpu="H100")])
    assert [(row.name, row.unused_bytes) for row in rows] == [("alice", 2 * GIB), ("bob", GIB)]


def test_what_was_not_measured_is_none_and_not_zero() -> None:
    (row,) = by_person([found(unused_bytes=None)])
    assert (row.run_count, row.setting_count, row.unused_bytes, row.fraction, row.saving_text) == (1, 0, None, None, "")


def test_a_sum_with_a_lower_bound_is_a_lower_bound() -> None:
    rows = [found(saving_usd=10.0), found(gpu="H100", saving_usd=2.0, is_least=True)]
    assert by_person(rows)[0].saving_text == "at least $12.00 a year"
    assert by_person(rows[:1])[0].saving_text == "$10.00 a year"


def test_a_measured_speed_without_a_gain_is_not_called_unmeasured() -> None:
    assert by_person([found(saving_usd=0.0)])[0].saving_text == "no gain shown"


def test_an_own_script_is_not_the_model_of_the_same_name() -> None:
    rows = by_training([found(), found(is_own=True)])
    assert sorted((row.name, row.is_own, row.run_count) for row in rows) == [("bert", False, 1), ("bert", True, 1)]


def test_runs_of_nobodys_account_are_a_row_of_their_own() -> None:
    assert {row.name for row in by_person([found(None), found("alice")])} == {None, "alice"}
