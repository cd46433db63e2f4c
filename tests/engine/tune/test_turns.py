"""Two sizes are compared by starts in turns, and no more is claimed than their pairs show."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from engine.errors import CommandUntunable, TimeIsUp
from engine.result import Outcome, Probe
from engine.speed.comparison import Comparison
from engine.tune.turns import ENOUGH_ROUNDS, MOST_PAIRS, InTurns, mean_speed, steps_to_time

TODAY, OTHER = 16, 48
ORDER = [TODAY, OTHER, OTHER, TODAY] * MOST_PAIRS


def start_of(speed: Callable[[int, int], float]) -> Callable[[int], Probe]:
    """Make starts whose samples a second depend on the size and on the number of the start."""
    numbers = count()

    def start(size: int) -> Probe:
        seconds = size / speed(size, next(numbers))
        return Probe(
            size,
            Outcome.FITS,
            step_seconds=seconds,
            timed_step_seconds=(seconds,) * 2,
            samples_per_second=size / seconds,
        )

    return start


def compared(
    start: Callable[[int], Probe], *, may_keep_today: bool = True, seconds_left: float = 1e6
) -> tuple[InTurns, Comparison]:
    in_turns = InTurns(start, lambda *_, **__: None, lambda: seconds_left)
    return in_turns, in_turns.compare(TODAY, OTHER, may_keep_today=may_keep_today)


def test_the_starts_alternate_so_that_each_size_is_the_first_one_equally_often() -> None:
    in_turns, found = compared(start_of(lambda size, _: {TODAY: 100.0, OTHER: 250.0}[size]))
    assert [probe.batch_size for probe in in_turns.timed] == ORDER[: 2 * ENOUGH_ROUNDS]
    assert found.speedup is not None
    assert (found.speedup.low, found.speedup.value, found.speedup.high) == pytest.approx((2.5,) * 3)
    assert (found.is_measurable, found.recommended, found.rounds) == (True, None, ENOUGH_ROUNDS)
    assert {size: speed.value for size, speed in found.speeds.items()} == pytest.approx({TODAY: 100.0, OTHER: 250.0})


def test_a_machine_that_slows_down_slowly_does_not_change_the_ratio() -> None:
    _, found = compared(start_of(lambda size, number: {TODAY: 100.0, OTHER: 150.0}[size] * 0.97**number))
    assert found.speedup is not None
    assert found.speedup.low < 1.5 < found.speedup.high
    assert found.speedup.value == pytest.approx(1.5, rel=0.02)


def test_a_size_that_is_not_clearly_faster_leaves_today_s_recommended() -> None:
    start = start_of(lambda size, number: 100.0 + number % 2)
    _, found = compared(start)
    assert found.speedup is not None
    assert (found.recommended, found.speedup.value) == (TODAY, 1.0)
    _, found = compared(start, may_keep_today=False)
    assert found.recommended is None


def test_wild_starts_go_on_to_the_most_pairs_and_claim_nothing() -> None:
    in_turns, found = compared(start_of(lambda _, number: 100.0 * 3 ** ((number * 7 % 5) - 2)))
    assert (found.is_measurable, found.rounds, found.speeds) == (False, MOST_PAIRS, {})
    assert "speed not measurable here now: 48 is between" in (found.reason or "")
    assert [len(probe.timed_step_seconds) for probe in in_turns.probes(found)] == [2 * MOST_PAIRS] * 2


@pytest.mark.parametrize(
    ("fails", "reason"),
    [
        (TimeIsUp(), "the time budget ended after 3 of at least 6 pairs of starts"),
        (CommandUntunable("ended_early", "the training ended"), "a start could not be timed: the training ended"),
    ],
)
def test_a_comparison_that_ends_early_says_why(fails: Exception, reason: str) -> None:
    start, numbers = start_of(lambda *_: 100.0), count()

    def failing(size: int) -> Probe:
        if next(numbers) == 7:
            raise fails
        return start(size)

    _, found = compared(failing)
    assert (found.is_measurable, found.reason) == (False, f"speed not measured: {reason}")


def test_a_size_that_does_not_train_again_gives_no_speed() -> None:
    _, found = compared(lambda size: Probe(size, Outcome.OUT_OF_MEMORY, error_message="CUDA out of memory"))
    assert "batch 16 gave no speed: CUDA out of memory" in (found.reason or "")


def test_a_start_is_timed_over_all_its_steps_where_the_data_comes_in_bursts() -> None:
    bursts = Probe(8, Outcome.FITS, step_seconds=1.0, timed_step_seconds=(1.0, 1.0, 6.0, 0.0), samples_per_second=16.0)
    assert mean_speed(bursts) == 8.0  # two micro-batches in each step


def test_a_timed_size_keeps_the_steps_of_all_its_starts() -> None:
    in_turns, found = compared(start_of(lambda size, _: float(size)))
    probe = in_turns.probes(found)[0]
    assert (probe.batch_size, probe.purpose, probe.step_seconds) == (TODAY, "timing", pytest.approx(1.0))
    assert len(probe.timed_step_seconds) == 2 * ENOUGH_ROUNDS


@pytest.mark.parametrize(("step_seconds", "steps"), [(None, 6), (10.0, 6), (0.1, 20), (0.0001, 500)])
def test_short_steps_are_timed_more_often(step_seconds: float | None, steps: int) -> None:
    assert steps_to_time(step_seconds) == steps
