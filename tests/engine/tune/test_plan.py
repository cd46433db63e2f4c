"""The time that a tuning goes on is that of the starts it still expects."""

import pytest

from engine.plan import SoFar
from engine.results.result import Outcome, Probe, Purpose
from engine.tune.plan import (
    COMPARED,
    search_starts_left,
    seconds_left,
    start_under_way,
    starts_left,
)

MOST_PAIRS = 12


def start(size: int, *, fits: bool = True, seconds: float = 4.0, purpose: Purpose = Purpose.SEARCH) -> Probe:
    outcome = Outcome.FITS if fits else Outcome.OUT_OF_MEMORY
    return Probe(size, outcome, purpose=purpose, steps=5, wall_seconds=seconds)


FIRST, NEAR, OVER = start(16), start(512), start(1937, fits=False)
FOUND = (FIRST, NEAR, OVER, start(1715), start(1716, fits=False))
AT_RESERVE = start(1614, purpose=Purpose.CURVE)


def left(phase: str, *probes: Probe, **known: object) -> float | None:
    usual = {"current_batch_size": 16, "compares_speed": False, "under_way_seconds": None}
    return seconds_left(SoFar(phase, probes, **{**usual, **known}))


def test_nothing_is_said_before_the_first_start_has_ended() -> None:
    assert left("searching") is None
    assert left("searching", under_way_seconds=20.0) is None


def test_the_starts_left_get_fewer_until_two_neighbours_are_known() -> None:
    expected = [search_starts_left(FOUND[:count]) for count in range(len(FOUND) + 1)]
    assert expected == sorted(expected, reverse=True)
    assert expected[-1] == 0


def test_a_start_takes_as_long_as_those_near_the_limit() -> None:
    slow = (FIRST, start(512, seconds=9.0))
    expected = starts_left(SoFar("searching", slow, 16, compares_speed=False))
    assert left("searching", *slow) == pytest.approx(9.0 * expected)


def test_the_size_at_the_reserve_and_the_comparison_come_after_the_search() -> None:
    alone = left("curve", *FOUND)
    compared = left("curve", *FOUND, compares_speed=True)
    assert alone == pytest.approx(4.0)
    assert compared == pytest.approx(4.0 + COMPARED * 4.0)
    assert left("curve", *FOUND, AT_RESERVE) == 0
    assert left("timing", *FOUND, AT_RESERVE, compares_speed=True, timing_seconds_left=50.0) == 50.0


def test_a_start_under_way_has_its_time_taken_off_and_never_all_of_it() -> None:
    times = [left("searching", *FOUND[:3], under_way_seconds=seconds) for seconds in (0.0, 1.0, 3.0, 40.0)]
    assert None not in times
    assert times == sorted(times, reverse=True)
    assert times[0] - times[1] == pytest.approx(1.0)
    assert times[-1] > 0
    unplanned = left("curve", *FOUND, AT_RESERVE, under_way_seconds=1.0)
    assert unplanned == pytest.approx(3.0)


def test_the_start_under_way_is_one_of_those_expected_until_speeds_are_compared() -> None:
    def counted(phase: str, *probes: Probe) -> tuple[int, float | None]:
        so_far = SoFar(phase, probes, 16)
        start = start_under_way(so_far, len(probes) + 1)
        return start.expected, start.seconds_each

    assert counted("searching") == (5, None)
    assert counted("searching", FIRST) == (5, 4.0)
    assert counted("searching", FIRST, start(512, seconds=9.0)) == (5, 9.0)
    assert counted("curve", *FOUND) == (6, 4.0)
    many = (FIRST, NEAR, *(start(513 + n) for n in range(5)))
    assert counted("searching", *many)[0] == len(many) + 3
