"""What a tuning says of its time: how long it goes on, which part of a start is longest, what waits for data."""

import pytest

from engine.describe.time_left.measurement import SoFar
from engine.describe.time_left.starts import (
    COMPARED,
    search_starts_left,
    seconds_left,
    start_under_way,
    starts_left,
)
from engine.facts.result import Outcome, Probe, Purpose
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.result import Throughput, describe_loader
from engine.trainings.script.spec import FUNCTION, FunctionSpec, TuneSpec, function_command
from engine.trainings.script.start_times import describe_parts

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


COMMAND = TuneSpec(("python", "train.py", "{batch_size}"))
BEGAN = 1_000.0
IMPORT = "a start takes 42 s: 22 s until torch was imported, 12 s data and model"


def noted(armed: float, forward: float | None, *steps: float) -> Reading:
    """Return the marks of a process, at these seconds after its start began."""
    marks = [[BEGAN + armed, "armed", "2.13.0", ["train.py"]]]
    marks += [] if forward is None else [[BEGAN + forward, "phase", "forward", None, None]]
    return Reading({"marks": [*marks, *([BEGAN + at, "step", 7] for at in steps)]})


def said(*readings: Reading, spec: TuneSpec | FunctionSpec = COMMAND, wall_seconds: float = 42.0) -> str | None:
    return describe_parts(spec, readings, Ended(began=BEGAN, wall_seconds=wall_seconds))


def test_the_parts_of_a_long_start_are_named_in_their_order() -> None:
    assert said(noted(12, 34, 37, 38, 39, 41)) == (
        "a start takes 42 s: 12 s until torch was imported, 22 s data and model, 3.0 s the first step, "
        "4.0 s the others, 1.0 s to its end; fewer rows shorten it"
    )


def test_a_part_that_took_no_time_is_left_out() -> None:
    assert said(noted(2, 2.1, 3, 41.8)) == (
        "a start takes 42 s: 2.0 s until torch was imported, 0.9 s the first step, 39 s the others"
    )


def test_a_training_without_a_forward_pass_that_was_seen_has_its_first_step_with_data_and_model() -> None:
    assert "36 s data and model, 4.0 s the others" in (said(noted(2, None, 38, 42)) or "")


def test_of_several_processes_the_one_that_trained_tells() -> None:
    assert said(noted(1, None), noted(12, 34, 37, 41)) == said(noted(12, 34, 37, 41))


def test_nothing_is_said_of_a_quick_start_or_of_one_that_made_no_step() -> None:
    assert said(noted(1, 2, 3, 4), wall_seconds=19.0) is None
    assert said(noted(1, 2)) is None
    assert said() is None
    emulated = TuneSpec(("torchrun", "train.py", "{batch_size}"), emulate_ranks=8)
    assert said(noted(12, 34, 37, 41), spec=emulated) is None


@pytest.mark.parametrize(
    ("spec", "is_helped"),
    [
        (COMMAND, False),
        (TuneSpec(function_command("train:make_step"), batch=FUNCTION), True),
        (TuneSpec(function_command("train:make_step", "/opt/python"), batch=FUNCTION), False),
        (FunctionSpec("train:make_step"), True),
        (FunctionSpec("train:make_step", starting="warm"), False),
    ],
)
def test_imports_are_shortened_where_a_function_can_be_started_warm(spec: TuneSpec | FunctionSpec, is_helped: bool):
    text = said(noted(22, 34, 37, 41), spec=spec)
    assert text is not None
    assert text.startswith(IMPORT)
    assert text.endswith("; --warm (in Python warm=True) imports once") == is_helped


def timed(size: int, waiting: float | None) -> Throughput:
    return Throughput(size, 100.0, waiting_fraction=waiting)


def test_a_loader_that_takes_longer_than_all_else_is_the_limit() -> None:
    throughputs = (timed(16, 0.1), timed(48, 0.62))
    assert (describe_loader(throughputs, 48, "cuda") or "").startswith(
        "Your data loader, not your GPU, is the limit: 62 % of each step with batch 48"
    )
    assert "not your computation" in (describe_loader(throughputs, 48, "cpu") or "")


def test_a_loader_that_keeps_up_or_was_not_seen_is_not() -> None:
    assert describe_loader((timed(16, 0.9), timed(48, 0.2)), 48, "cuda") is None
    assert describe_loader((timed(48, None),), 48, "cuda") is None
    assert describe_loader((), None, "cuda") is None


def test_a_size_that_was_not_timed_is_judged_by_the_largest_that_was() -> None:
    assert describe_loader((timed(16, 0.9),), 48, "cuda") is not None
