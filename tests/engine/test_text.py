"""Small rules of text: noise of libraries, durations."""

from engine.text.noise import is_noise
from engine.text.units import format_duration


def test_trace_points_and_empty_lines_say_nothing_of_a_run() -> None:
    assert is_noise("USDT: registered SyncActivityProfilerHandler")
    assert is_noise("USDT:2026-11-24 14:38:24 28263:28263 SyncActivityProfilerHandler.cpp:52] profiler_start")
    unknown = "Memory block of unknown size was allocated before the profiling started, profiler results will not"
    assert is_noise(f"[W1124 14:38:25.233064355 CPUAllocator.cpp:245] {unknown} include the deallocation event")
    assert is_noise("  ")
    assert not is_noise("[W1124 14:38:25.233064355 CPUAllocator.cpp:245] not enough memory")
    assert not is_noise("RuntimeError: USDT: is not at the start")


def test_minutes_are_min_and_need_no_leading_zero() -> None:
    assert [format_duration(seconds) for seconds in (351, 65, 3_840, 7_200)] == [
        "5 min 51 s",
        "1 min 5 s",
        "1 h 4 min",
        "2 h",
    ]
