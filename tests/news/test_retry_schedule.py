"""When a failed delivery is tried again; that it is given up a day later is in test_deliver."""

from hypothesis import given
from hypothesis import strategies as st

from analysis.news.deliver import LONGEST_SECONDS, delay_seconds


def test_delays_double_up_to_an_hour() -> None:
    delays = [delay_seconds(attempts, base_seconds=10, fraction=1.0) for attempts in range(1, 12)]
    assert delays[:4] == [10, 20, 40, 80]
    assert delays[-1] == LONGEST_SECONDS


@given(attempts=st.integers(1, 10_000), fraction=st.floats(0, 1))
def test_a_delay_lies_in_the_upper_half_of_its_range(attempts: int, fraction: float) -> None:
    longest = delay_seconds(attempts, base_seconds=10, fraction=1.0)
    assert longest / 2 <= delay_seconds(attempts, base_seconds=10, fraction=fraction) <= longest
