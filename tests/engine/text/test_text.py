"""Small rules of text: noise of libraries, durations, sizes as people write them."""

import pytest

from engine.text.noise import is_noise
from engine.text.units import MIB, describe_over, format_bytes, format_duration, parse_bytes


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


@pytest.mark.parametrize(
    ("text", "size"),
    [("24GiB", 24 * 2**30), ("512 mib", 512 * 2**20), ("24GB", 24 * 10**9), ("1.5GiB", 3 * 2**29), ("4096", 4096)],
)
def test_a_size_is_read_with_binary_and_decimal_units_told_apart(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0", "0GiB", "-1GiB", "GiB", "1e9", "12 parsecs", "1.2.3GiB", "٤GiB", "9" * 40])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="not a size"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**30, "1.0 GiB"), (-(2**21), "-2.0 MiB")]
)
def test_a_size_is_written_in_the_largest_unit_that_fits(size, text):
    assert format_bytes(size) == text


def test_a_peak_just_over_the_limit_does_not_look_like_the_limit() -> None:
    """Both were 256.0 MiB, and one of them did not fit."""
    assert describe_over(268_473_248, 256 * MIB) == "256.0 MiB, 36.9 KiB over the limit of 256.0 MiB"
