"""Memory left unused, by person and by training: newest run of each setting, nothing invented for the others."""

from typing import Any

from analysis.lists.use.unused import MeasuredSetting, Unused, unused_by
from engine.text.units import GIB


def found(setting: str = "A100", **figures: Any) -> MeasuredSetting:
    return MeasuredSetting(setting, **{"unused_bytes": GIB, "limit_bytes": 4 * GIB, "saving_usd": None, **figures})


def test_a_setting_that_was_measured_often_counts_once_by_its_newest_run() -> None:
    row = Unused.of([found(unused_bytes=GIB), found(unused_bytes=3 * GIB)])
    assert (row.run_count, row.setting_count, row.unused_bytes, row.of_bytes) == (2, 1, GIB, 4 * GIB)


def test_who_leaves_most_unused_stands_first_and_runs_of_nobodys_account_are_a_row_of_their_own() -> None:
    runs = [found(person="bob"), found(person=None), found(person="alice"), found("H100", person="alice")]
    rows = unused_by(runs, lambda run: run.person)
    assert [(name, row.unused_bytes) for name, row in rows.items()] == [("alice", 2 * GIB), (None, GIB), ("bob", GIB)]


def test_what_was_not_measured_is_none_and_not_zero() -> None:
    row = Unused.of([found(unused_bytes=None)])
    assert (row.run_count, row.setting_count, row.unused_bytes, row.fraction, row.saving_text) == (1, 0, None, None, "")


def test_a_sum_with_a_lower_bound_is_a_lower_bound() -> None:
    runs = [found(saving_usd=10.0), found("H100", saving_usd=2.0, is_least=True)]
    assert Unused.of(runs).saving_text == "at least $12.00"
    assert Unused.of(runs[:1]).saving_text == "$10.00"


def test_a_measured_speed_without_a_gain_is_not_called_unmeasured() -> None:
    assert Unused.of([found(saving_usd=0.0)]).saving_usd == 0.0
