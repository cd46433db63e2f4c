"""The time a run may still take is taken from its own probes, and is not told where they do not show it."""

from __future__ import annotations

import pytest

from engine.plan import SecondsLeft, SoFar, seconds_left, share_of_phase
from engine.result import Outcome, Probe, Purpose
from engine.speed.selection import EXTRA_SECONDS


def fits(size: int, step_seconds: float, purpose: Purpose = Purpose.SEARCH) -> Probe:
    return Probe(size, Outcome.FITS, purpose=purpose, steps=3, wall_seconds=3 * step_seconds)


def refused(size: int) -> Probe:
    return Probe(size, Outcome.OUT_OF_MEMORY, steps=0, wall_seconds=0.1)


def left(phase: str, *probes: Probe, **known) -> SecondsLeft | None:
    return seconds_left(SoFar(phase, probes, **{"current_batch_size": 16, "soak_steps": 5, **known}))


ONE, SIXTY = fits(1, 0.1), fits(60, 3.0)


@pytest.mark.parametrize(
    ("phase", "probes", "expected"),
    [
        ("", (), 60),
        ("estimating", (), 60),
        ("searching", (ONE,), 60),  # one probe is no line
        ("searching", (ONE, fits(16, 1.0)), None),  # nothing to aim at
        ("searching", (ONE, SIXTY), 50),  # the estimate was too low: how far it goes on is open
        ("searching", (refused(16), refused(1)), 60),  # nothing trained
    ],
)
def test_what_the_probes_do_not_show_is_not_told(phase, probes, expected):
    assert left(phase, *probes, expected=expected) is None


def test_the_search_is_expected_to_end_at_the_estimate_or_below_what_was_refused():
    by_estimate = left("searching", ONE, fits(16, 1.0), expected=60)
    by_refusal = left("searching", ONE, SIXTY, refused(61))
    assert by_estimate is not None
    assert by_refusal is not None
    assert by_refusal.least < by_estimate.least
    assert by_refusal.most < by_estimate.most


def test_an_estimate_that_has_come_true_leaves_the_next_size_to_be_refused():
    there, before = (left("searching", ONE, fits(size, 3.0), expected=60) for size in (60, 59))
    assert there is not None
    assert before is not None
    assert there.least < before.least


def test_a_size_near_the_estimate_that_fitted_leaves_fewer_probes_to_expect():
    near, far = (left("searching", ONE, fits(size, size / 20), expected=60) for size in (55, 20))
    assert near is not None
    assert far is not None
    assert near.most < far.most


def test_a_step_beyond_those_measured_takes_its_time_in_proportion():
    slow = left("soaking", ONE, fits(60, 3.0))
    fast = left("soaking", ONE, fits(60, 0.3))
    assert slow is not None
    assert fast is not None
    assert slow.least > 5 * 3.0  # the long run alone
    assert fast.most - EXTRA_SECONDS < (slow.most - EXTRA_SECONDS) / 4


def test_each_phase_leaves_less_to_do_than_the_one_before():
    probes = (ONE, SIXTY, refused(61))
    phases = [left(phase, *probes) for phase in ("searching", "soaking", "curve", "timing")]
    assert None not in phases
    assert all(one.least <= one.most for one in phases)
    assert [one.most for one in phases] == sorted((one.most for one in phases), reverse=True)
    assert [one.least for one in phases] == sorted((one.least for one in phases), reverse=True)


def test_a_size_that_was_measured_is_no_longer_planned():
    before = left("curve", ONE, SIXTY, refused(61))
    after = left("curve", ONE, SIXTY, refused(61), fits(16, 0.8, Purpose.CURVE))
    assert after.least < before.least


def test_a_new_process_takes_its_time():
    quick, slow = (left("soaking", ONE, SIXTY, refused(61), open_seconds=seconds) for seconds in (0.0, 10.0))
    # the long run, the comparison and the finding out of what filled the memory have one each
    assert slow.most == pytest.approx(quick.most + 30)
    assert slow.least == quick.least


def test_the_engines_own_bound_stands_while_it_compares_speeds():
    assert left("timing", ONE, timing_seconds_left=41.0) == SecondsLeft(0.0, 41.0)


def share(phase: str, *probes: Probe, **known) -> float:
    return share_of_phase(SoFar(phase, probes, **{"current_batch_size": 16, "soak_steps": 5, **known}))


def test_the_share_of_a_phase_rises_with_its_probes_and_stays_below_all_of_it():
    searched = [share("searching", *probes, expected=60) for probes in ((), (ONE,), (ONE, fits(55, 2.8)))]
    assert searched[0] == 0
    assert searched == sorted(searched)
    assert max(searched) < 1
    found = (ONE, SIXTY, refused(61))
    drawn = [share("curve", *found, *more) for more in ((), (fits(16, 0.8, Purpose.CURVE),))]
    assert 0 == drawn[0] < drawn[1] < 1
    assert share("soaking", *found) == 0
