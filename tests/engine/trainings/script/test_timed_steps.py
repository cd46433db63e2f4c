"""Steps in the bursts of a loader's workers have one speed; and which sizes are compared with today's."""

from dataclasses import replace
from statistics import fmean

import pytest

from engine.facts.not_compared import NotCompared
from engine.facts.result import DeviceFacts, Outcome, Probe
from engine.race.speed.rounds import Candidates
from engine.trainings.script.judge.evidence import Evidence
from engine.trainings.script.judge.timed_steps import Loader, settled_steps
from engine.trainings.script.spec import TuneSpec
from engine.trainings.script.speed.to_compare import (
    MOST_BETWEEN,
    others_to_compare,
    size_to_start,
    sizes_to_compare,
)
from tests.engine.trainings.script.test_evidence import TIMED_STEPS, judged, marks_of, reading, steps
from tests.engine.trainings.script.test_in_turns import README

LONG, SHORT = 0.16, 0.002
UNTIMED = {"samples_per_second": None, "step_seconds": None, "timed_step_seconds": ()}


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


def test_a_full_collection_of_garbage_is_no_part_of_the_step_that_it_hit() -> None:
    marks = marks_of(steps(32))
    places = [number for number, mark in enumerate(marks) if mark[1] == "step"]
    later = [[at + (0.5 if number >= places[-1] else 0.0), *rest] for number, (at, *rest) in enumerate(marks)]
    later.insert(places[-1], [later[places[-1]][0] - 0.1, "collected", 0.5])
    quiet, hit = (judged([reading([], marks=each)], 32) for each in (marks, later))
    assert hit.timing.step_seconds == pytest.approx(quiet.timing.step_seconds)
    assert (quiet.timing.collecting_fraction, hit.timing.collecting_fraction > 0) == (0.0, True)


def test_what_the_watch_took_is_no_part_of_a_step_and_leaves_some_of_each() -> None:
    plain, watched = (judged([reading(steps(32), own_seconds=own)], 32) for own in (0.0, 0.25))
    assert watched.timing.step_seconds == pytest.approx([each - 0.25 for each in plain.timing.step_seconds])
    assert min(judged([reading(steps(32), own_seconds=9.0)], 32).timing.step_seconds) > 0


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
    assert found.timing.settling_steps == 5


def test_a_training_that_does_not_wait_keeps_all_its_steps() -> None:
    found = waiting([0.1] * 15, waits=False)
    assert (len(found.probe.timed_step_seconds), found.timing.settling_steps) == (15, 0)


def test_where_too_few_steps_were_timed_for_a_burst_their_mean_stands_and_more_are_timed_next() -> None:
    found = waiting(burst_of(8, 6), loader=(8, 16))
    assert found.probe.step_seconds == pytest.approx(fmean(burst_of(8, 6)))
    assert (found.timing.is_settled, found.timing.settling_steps) == (False, 16 + 7)


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


LIMIT_BYTES = 1_000_000


@pytest.mark.parametrize(
    ("today", "others"),
    [
        (16, (1024, 4816, 2542)),
        (1024, (2542, 4816)),
        (2542, (4816,)),
        (4816, ()),  # at the largest: no smaller one was clearly faster
        (None, (1024, 4816, 2542)),
    ],
)
def test_the_readme_s_example_compares_the_bend_the_largest_and_one_between(
    today: int | None, others: tuple[int, ...]
) -> None:
    assert others_to_compare(README, today) == others


def test_a_smaller_size_is_compared_only_where_its_start_was_clearly_faster() -> None:
    assert others_to_compare({8: 120.0, 16: 100.0}, 16) == ()
    assert others_to_compare({8: 130.0, 16: 100.0}, 16) == (8,)
    assert others_to_compare({8: 130.0, 16: 100.0, 64: 101.0}, 16) == (8, 64)


def test_the_size_next_to_the_bend_lies_above_it_or_else_below() -> None:
    assert others_to_compare({1: 10.0, 8: 85.0, 32: 95.0, 64: 99.0, 128: 100.0, 512: 100.0}, 1) == (32, 512, 128)
    assert others_to_compare({1: 10.0, 8: 85.0, 32: 95.0}, 1) == (32, 8)
    assert others_to_compare({1: 10.0, 8: 75.0, 32: 95.0}, 1) == (32,)


def test_without_today_s_size_the_best_is_compared_with_the_next_best() -> None:
    assert others_to_compare({4: 10.0, 8: 30.0, 32: 95.0}, None) == (32, 8)
    assert others_to_compare({4: 10.0}, None) == (4,)


def test_sizes_that_are_nearly_the_same_are_not_both_compared() -> None:
    assert others_to_compare({16: 16.0, 32: 32.0, 38: 38.0}, 16) == (38,)


def curve(size: int) -> float:
    """Samples a second that come near 100 from about 300 on."""
    return 100.0 * size / (size + 30)


@pytest.mark.parametrize("largest", [64, 500, 5_000, 100_000])
def test_few_starts_find_where_the_speeds_bend_and_what_comes_within_3_percent(largest: int) -> None:
    speeds = {16: curve(16), largest: curve(largest)}
    for _ in range(MOST_BETWEEN):
        if (size := size_to_start(dict(sorted(speeds.items())), 16)) is None:
            break
        assert 16 < size < largest
        speeds[size] = curve(size)
    compared = others_to_compare(dict(sorted(speeds.items())), 16)
    best = min(size for size in compared if curve(size) >= 0.97 * curve(max(compared)))
    assert best <= 4_096


def test_no_size_is_started_where_the_bend_is_known() -> None:
    assert size_to_start({16: 95.0, 64: 96.0, 256: 97.0, 5_000: 100.0}, 16) is None
    assert size_to_start({16: 95.0}, 16) is None


def test_no_size_below_today_s_is_started_for_its_speed() -> None:
    assert size_to_start({1: 5.0, 512: 95.0, 600: 100.0}, 512) is None


def probe(size: int, speed: float, *, seconds: float = 5.0, outcome: Outcome = Outcome.FITS) -> Probe:
    return Probe(
        size,
        outcome,
        peak_allocated_bytes=100 * size,
        step_seconds=size / speed,
        timed_step_seconds=(size / speed,) * 3,
        samples_per_second=speed,
        wall_seconds=seconds,
    )


def what(today: int, *, seconds: float = 5.0, are_held: bool = False, **settings: float) -> Candidates | NotCompared:
    spec = TuneSpec(("python", "train.py", "{batch_size}"), current_batch_size=today, **settings)  # type: ignore[arg-type]
    device = DeviceFacts("cpu", "cpu", "made up", LIMIT_BYTES, limit_bytes=LIMIT_BYTES)
    probes = [probe(size, speed, seconds=seconds) for size, speed in README.items()]
    probes += [probe(9_999, 13_100.0, seconds=seconds), probe(10_000, 1.0, outcome=Outcome.OUT_OF_MEMORY)]
    return sizes_to_compare(spec, device, probes, 9_999, are_held=are_held)


def test_the_sizes_come_with_the_speeds_of_their_starts() -> None:
    found = what(16)
    assert isinstance(found, Candidates)
    assert (found.current, found.sizes) == (16, (1024, 2542, 4816))
    assert found.by_start[1024] == pytest.approx(README[1024])


def test_sizes_whose_data_ended_before_a_step_was_timed_are_compared_by_starts_of_their_own() -> None:
    spec = TuneSpec(("python", "train.py", "{batch_size}"), current_batch_size=16)
    device = DeviceFacts("cpu", "cpu", "made up", LIMIT_BYTES, limit_bytes=LIMIT_BYTES)
    probes = [probe(16, 1771.0), *(replace(probe(size, 1.0), **UNTIMED) for size in (512, 3340, 9_999))]
    found = sizes_to_compare(spec, device, probes, 9_999, are_held=True)
    assert isinstance(found, Candidates)
    assert (found.current, set(found.sizes) <= {512, 3340, 9_999}, len(found.sizes)) == (16, True, 2)
    assert found.by_start == {}


def test_slow_starts_compare_fewer_sizes_and_very_slow_ones_none() -> None:
    slow = what(16, seconds=60.0)
    assert isinstance(slow, Candidates)
    assert slow.sizes == (1024,)
    assert what(16, seconds=80.0) is NotCompared.TOO_LONG


def test_very_slow_starts_that_are_held_are_made_once_and_compared_by_their_blocks() -> None:
    held = what(16, seconds=80.0, are_held=True)
    assert isinstance(held, Candidates)
    assert held.sizes == (1024, 2542, 4816)


def test_what_is_left_of_the_time_budget_bounds_the_comparison() -> None:
    found = what(16, time_budget_seconds=124.0)
    assert isinstance(found, Candidates)
    assert found.sizes == (1024, 4816)


def test_a_size_of_today_s_that_was_refused_leaves_the_others_to_be_compared() -> None:
    found = what(20_000)
    assert isinstance(found, Candidates)
    assert (found.current, found.sizes) == (None, (1024, 2542, 4816))


def test_a_size_of_today_s_that_was_never_started_is_compared_with_nothing() -> None:
    assert what(17) is NotCompared.TODAY_NOT_MEASURED


def test_who_trains_at_the_largest_already_has_nothing_to_compare() -> None:
    for today in (4816, 9_999):
        assert what(today) is NotCompared.NONE_TO_COMPARE
