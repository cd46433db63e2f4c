"""When a failed delivery is tried again."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from analysis.news.retry_schedule import LONGEST_SECONDS, delay_seconds, next_attempt

NOW = datetime.fromisoformat("2026-01-01T00:00+00:00")


def test_delays_double_up_to_an_hour() -> None:
    delays = [delay_seconds(attempts, base_seconds=10, fraction=1.0) for attempts in range(1, 12)]
    assert delays[:4] == [10, 20, 40, 80]
    assert delays[-1] == LONGEST_SECONDS


@given(attempts=st.integers(1, 10_000), fraction=st.floats(0, 1))
def test_a_delay_lies_in_the_upper_half_of_its_range(attempts: int, fraction: float) -> None:
    longest = delay_seconds(attempts, base_seconds=10, fraction=1.0)
    assert longest / 2 <= delay_seconds(attempts, base_seconds=10, fraction=fraction) <= longest


def test_a_delivery_is_given_up_when_the_next_attempt_would_be_too_late() -> None:
    rest = {"now": NOW, "base_seconds": 10, "give_up_seconds": 86_400, "fraction": 1.0}
    assert next_attempt(1, created_at=NOW, **rest) == NOW + timedelta(seconds=10)
    assert next_attempt(20, created_at=NOW - timedelta(hours=22), **rest) == NOW + timedelta(hours=1)
    assert next_attempt(20, created_at=NOW - timedelta(hours=23, minutes=30), **rest) is None
