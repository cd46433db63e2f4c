"""Hours of each day in which a run held a device, and the memory that was left unused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from analysis.lists.use.days import Held, use_by_day, use_by_person
from analysis.lists.use.unused import MeasuredSetting, Unused, unused_by
from engine.text.units import GIB

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def at(day: int, hour: float = 0) -> datetime:
    return datetime(2026, 11, day, tzinfo=UTC) + timedelta(hours=hour)


def hours(*spans: Held, count: int = 3) -> list[float]:
    use = use_by_day(spans, {1: at(1)}, NOW, count)[1]
    return [round(day.hours, 3) for day in use.days]


def test_the_last_day_is_today_and_only_its_past_hours_can_be_used() -> None:
    use = use_by_day([], {1: at(1)}, NOW, 3)[1]
    assert [(str(day.day), day.of_hours) for day in use.days] == [
        ("2026-11-21", 24.0),
        ("2026-11-22", 24.0),
        ("2026-11-23", 12.0),
    ]


def test_a_run_over_midnight_is_split_between_both_days() -> None:
    assert hours(Held(1, at(21, 22), at(22, 3))) == [2.0, 3.0, 0.0]


def test_what_lies_before_the_first_day_or_after_now_is_cut_off() -> None:
    assert hours(Held(1, at(19), at(21, 1)), Held(1, at(23, 11), at(24))) == [1.0, 0.0, 1.0]


def test_two_runs_at_once_count_once() -> None:
    assert hours(Held(1, at(22, 1), at(22, 5)), Held(1, at(22, 2), at(22, 3)), Held(1, at(22, 4), at(22, 6))) == [
        0,
        5,
        0,
    ]


def test_the_share_of_all_days_is_that_of_the_hours_that_are_over() -> None:
    use = use_by_day([Held(1, at(21), at(22))], {1: at(1)}, NOW, 3)[1]
    assert (use.hours, use.run_count) == (24.0, 1)
    assert use.fraction == pytest.approx(24 / 60)


def test_a_device_is_asked_for_no_hours_before_it_was_known_or_first_used() -> None:
    spans = [Held(1, at(23, 11), at(23, 11.5))]
    use = use_by_day(spans, {1: at(23, 11)}, NOW, 3)[1]
    assert (use.days[0].of_hours, use.days[2].of_hours, use.fraction) == (0.0, 1.0, 0.5)
    use = use_by_day([*spans, Held(1, at(22, 23), at(22, 24))], {1: at(23, 11)}, NOW, 3)[1]
    assert (use.days[1].of_hours, use.fraction) == (1.0, pytest.approx(1.5 / 13))


def test_other_devices_do_not_count() -> None:
    assert hours(Held(2, at(22), at(23))) == [0.0, 0.0, 0.0]


def test_right_after_midnight_nothing_is_divided_by_zero() -> None:
    use = use_by_day([], {1: at(1)}, at(23), 1)[1]
    assert (use.days[0].of_hours, use.days[0].fraction, use.fraction) == (0.0, 0.0, 0.0)


def test_people_are_added_up_over_their_devices_and_who_used_most_comes_first() -> None:
    spans = [
        Held(1, at(21, 1), at(21, 3), "bob"),
        Held(2, at(21, 1), at(21, 4), "bob"),
        Held(2, at(22), at(22, 1)),
        Held(3, at(22), at(22, 9), "eve"),  # on a device that is not shown
    ]
    people = use_by_person(spans, {1: at(1), 2: at(1)}, NOW, 3)
    assert [(name, use.run_count, [day.hours for day in use.days]) for name, use in people.items()] == [
        ("bob", 2, [5.0, 0.0, 0.0]),
        (None, 1, [0.0, 1.0, 0.0]),
    ]
    assert people["bob"].days[0].of_hours == 48.0


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
