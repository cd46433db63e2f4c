"""Small rules of text: noise of libraries, durations."""

from __future__ import annotations

from engine.text.noise import is_noise
from engine.text.units import format_duration


def test_trace_points_and_empty_lines_say_nothing_of_a_run() -> None:
    assert is_noise("USDT: registered SyncActivityProfilerHandler")
    assert is_noise("  ")
    assert not is_noise("RuntimeError: USDT: is not at the start")


def test_minutes_are_min_and_need_no_leading_zero() -> None:
    assert [format_duration(seconds) for seconds in (351, 65, 3_840, 7_200)] == [
        "5 min 51 s",
        "1 min 5 s",
        "1 h 4 min",
        "2 h",
    ]
