"""Steps that come in the bursts of a loader's workers: the speed is the same whichever of them were timed."""

from statistics import fmean

import pytest

from engine.tune.evidence import Evidence
from engine.tune.speed.timed_steps import Loader, settled_steps
from tests.engine.tune.test_evidence import TIMED_STEPS, judged, marks_of, reading, steps

LONG, SHORT = 0.16, 0.002


def burst_of(workers: int, count: int) -> list[float]:
    """The lengths of steps fed by workers that end together."""
    return [SHORT if number % workers else LONG for number in range(count)]


@pytest.mark.parametrize("workers", [2, 3, 8])
@pytest.mark.parametrize("more", range(8))
def test_the_mean_step_is_the_same_however_many_steps_are_timed(workers: int, more: int) -> None:
    loader = Loader(workers, 2 * workers)
    count = 3 * workers + more
    found = settled_steps(burst_of(workers, count), loader, 1)
    assert fmean(found) == pytest.approx((LONG + (workers - 1) * SHORT) / workers)


def test_steps_fed_with_what_was_made_ahead_do_not_count() -> None:
    assert settled_steps([SHORT] * 4 + [LONG, SHORT] * 2, Loader(2, 4), 1) == pytest.approx([(LONG + SHORT) / 2] * 3)


def test_a_step_of_several_micro_batches_consumes_several_of_a_burst() -> None:
    assert Loader(4, 8).steps_of_bursts(2) == 2
    assert Loader(4, 8).steps_of_bursts(4) == 1
    assert Loader(3, 6).steps_of_bursts(2) == 3
    assert Loader(4, 8).settling_steps(2) == 4 + 1


def test_a_loader_without_workers_feeds_each_step_by_itself() -> None:
    steps = (0.1, 0.2, 0.3)
    assert settled_steps(steps, Loader(), 1) == pytest.approx(steps)
    assert Loader().settling_steps(1) == 0


def waiting(timed: list[float], *, waits: bool = True, loader: tuple[int, int] = (2, 4)) -> Evidence:
    """What a start shows whose steps took so long, all of it spent waiting for data or none."""
    now, marks = 0.0, [[0.0, "armed", "2.13.0", ["train.py"]]]
    for number, seconds in enumerate([1.0, 1.0, 1.0, *timed]):  # the third is where the timing begins
        marks += [[now, "loading"], [now + (seconds if waits else 0.0), "loaded"]]
        marks += [[now, "batch", True, [16, 64], None], [now, "phase", "forward", None]]
        now += seconds
        marks += [[now, "forward", 1_000, [16, 64], None], [now, "step", 7]]
        if number == 1:
            marks.append([now, "memory_read"])
    return judged([reading([], marks=marks, loader=loader)], 16)


def test_a_training_that_waits_for_workers_has_the_speed_of_whole_bursts() -> None:
    found = waiting(burst_of(2, 15))
    assert found.probe.samples_per_second == pytest.approx(16 / ((LONG + SHORT) / 2))
    assert found.probe.timing_is_steady
    assert found.settling_steps == 5


def test_a_training_that_does_not_wait_keeps_all_its_steps() -> None:
    found = waiting([0.1] * 15, waits=False)
    assert (len(found.probe.timed_step_seconds), found.settling_steps) == (15, 0)


def test_where_too_few_steps_were_timed_for_a_burst_their_mean_stands_and_more_are_timed_next() -> None:
    found = waiting(burst_of(8, 6), loader=(8, 16))
    assert found.probe.step_seconds == pytest.approx(fmean(burst_of(8, 6)))
    assert (found.is_settled, found.settling_steps) == (False, 16 + 7)


def test_steps_with_an_evaluation_in_between_do_not_count_unless_most_have_one() -> None:
    """A large batch ends a pass, and is evaluated, in the seconds in which a small one does not."""
    marks = marks_of(steps(40))
    ends = [number for number, mark in enumerate(marks) if mark[1] == "step"][-TIMED_STEPS:]

    def timed_with(evaluated: int) -> float | None:
        late = 10.0  # seconds of each evaluation
        found, shift = [], 0.0
        for number, (at, *mark) in enumerate(marks):
            found.append([at + shift, *mark])
            if number in ends[:evaluated]:  # after this step, so that the next one takes longer
                found.append([at + shift, "evaluated"])
                shift += late
        return judged([reading([], marks=found)]).probe.step_seconds

    assert timed_with(0) == timed_with(1) == 1.0
    assert timed_with(2) == 11.0
