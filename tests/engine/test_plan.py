"""The time a run still takes is taken from its own probes, and is not told where they do not show it."""

import pytest

from engine.plan import EXTRA_ROUNDS_SECONDS, SoFar, seconds_left, share_of_phase
from engine.results.result import Outcome, Probe, Purpose


def fits(size: int, step_seconds: float, purpose: Purpose = Purpose.SEARCH) -> Probe:
    return Probe(size, Outcome.FITS, purpose=purpose, steps=3, wall_seconds=3 * step_seconds)


def refused(size: int) -> Probe:
    return Probe(size, Outcome.OUT_OF_MEMORY, steps=0, wall_seconds=0.1)


def so_far(phase: str, *probes: Probe, **known: object) -> SoFar:
    return SoFar(phase, probes, **{"current_batch_size": 16, "soak_steps": 5, **known})


def left(phase: str, *probes: Probe, **known: object) -> float:
    seconds = seconds_left(so_far(phase, *probes, **known))
    assert seconds is not None
    return seconds


ONE, SIXTY = fits(1, 0.1), fits(60, 3.0)
SOAKED = fits(60, 1.8, Purpose.SOAK)
FOUND = (ONE, SIXTY, refused(61))


@pytest.mark.parametrize(
    ("phase", "probes", "expected"),
    [
        ("", (), 60),
        ("estimating", (), 60),
        ("searching", (ONE,), 60),  # one probe is no line
        ("searching", (ONE, fits(16, 1.0)), None),  # nothing to aim at
        ("searching", (ONE, SIXTY), 50),  # the estimate was too low: how far it goes on is open
        ("searching", (refused(16), refused(1)), 60),  # nothing trained
        ("timing", (), None),  # of a run that compares speeds again: not before its first round
    ],
)
def test_what_the_probes_do_not_show_is_not_told(phase, probes, expected):
    assert seconds_left(so_far(phase, *probes, expected=expected)) is None


def test_the_search_is_expected_to_end_at_the_estimate_or_below_what_was_refused():
    assert left("searching", *FOUND) < left("searching", ONE, fits(16, 1.0), expected=60)


def test_an_estimate_that_has_come_true_leaves_the_next_size_to_be_refused():
    there, before = (left("searching", ONE, fits(size, 3.0), expected=60) for size in (60, 59))
    assert there < before


def test_a_size_near_the_estimate_that_fitted_leaves_fewer_probes_to_expect():
    near, far = (left("searching", ONE, fits(size, size / 20), expected=60) for size in (55, 20))
    assert near < far


def test_a_step_beyond_those_measured_follows_the_line_and_is_at_most_in_proportion():
    flat, steep = (left("searching", fits(8, 1.0), fits(16, at_16), expected=160) for at_16 in (1.1, 2.0))
    assert flat < steep
    assert flat - EXTRA_ROUNDS_SECONDS < (steep - EXTRA_ROUNDS_SECONDS) / 2


def test_what_the_first_probe_loaded_is_not_expected_of_later_ones():
    assert left("curve", fits(1, 30.0), *FOUND[1:], SOAKED) == pytest.approx(
        left("curve", fits(1, 3.0), *FOUND[1:], SOAKED)
    )


def test_each_phase_leaves_less_to_do_than_the_one_before():
    shown = [left("searching", *FOUND), left("curve", *FOUND, SOAKED), left("timing", *FOUND, SOAKED)]
    shown.append(left("explaining", *FOUND, SOAKED))
    assert shown == sorted(shown, reverse=True)


@pytest.mark.parametrize("phase", ["searching", "soaking", "curve"])
def test_what_is_left_follows_from_the_probes_and_not_from_the_order_of_the_phases(phase):
    at_reserve = fits(56, 2.8, Purpose.CURVE)
    assert left(phase, *FOUND, at_reserve) < left(phase, *FOUND)
    assert left(phase, *FOUND, at_reserve, SOAKED) < left(phase, *FOUND, at_reserve)


def test_a_size_that_was_measured_is_no_longer_planned():
    assert left("curve", *FOUND, fits(16, 0.8, Purpose.CURVE)) < left("curve", *FOUND)


def test_a_new_process_takes_its_time():
    quick, slow = (left("soaking", *FOUND, open_seconds=seconds) for seconds in (0.0, 10.0))
    # the long run, the comparison and the finding out of what filled the memory have one each
    assert slow == pytest.approx(quick + 30)


def test_what_a_probe_has_taken_is_taken_off_and_never_all_of_it():
    times = [left("soaking", *FOUND, under_way_seconds=seconds) for seconds in (0.0, 1.0, 1e6)]
    assert times[0] - times[1] == pytest.approx(1.0)
    assert times[2] > left("curve", *FOUND, SOAKED)


def test_the_engines_own_figure_stands_while_it_compares_speeds():
    alone = left("explaining", *FOUND)
    assert left("timing", *FOUND, timing_seconds_left=41.0) == pytest.approx(41.0 + alone)
    assert left("timing", timing_seconds_left=41.0) == 41.0  # of a run that compares speeds again


def share(phase: str, *probes: Probe, **known: object) -> float:
    return share_of_phase(so_far(phase, *probes, **known))


def test_the_share_of_a_phase_rises_with_its_probes_and_stays_below_all_of_it():
    searched = [share("searching", *probes, expected=60) for probes in ((), (ONE,), (ONE, fits(55, 2.8)))]
    assert searched[0] == 0
    assert searched == sorted(searched)
    assert max(searched) < 1
    drawn = [share("curve", *FOUND, *more) for more in ((), (fits(16, 0.8, Purpose.CURVE),))]
    assert 0 == drawn[0] < drawn[1] < 1
    assert share("soaking", *FOUND) == 0
