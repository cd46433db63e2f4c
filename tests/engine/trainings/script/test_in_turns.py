"""Sizes of a script are compared by blocks of its starts, and no more is claimed than their rounds show."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from engine.errors import TimeIsUp
from engine.facts.not_compared import NotCompared
from engine.facts.result import Outcome
from engine.facts.speed_rounds import SpeedClaim
from engine.race.speed.comparison import Comparison, SpeedComparison, TimedBlock
from engine.race.speed.rounds import BUSY_STARTS_FRACTION, Candidates
from engine.race.speed.selection import EVALUATION_ROUNDS, FEWEST_DISTURBED
from engine.trainings.script.judge.timed_steps import steps_to_time

README = {16: 1771.0, 128: 8056.0, 1024: 13882.0, 2542: 13593.0, 4816: 13766.0}
"""Samples a second of the starts of the README's own example."""

Speed = Callable[[int, int], float]
"""Samples a second of a size, in the start of that number."""


def starts(speed: Speed, *, was_held: bool = False, others_cores: float = 0.0) -> Callable[[int, float], TimedBlock]:
    """Make blocks that take ten seconds each."""
    numbers = count()

    def time(size: int, _: float) -> TimedBlock:
        seconds = (size / speed(size, next(numbers)),) * 2
        conditions = {"others_cores": others_cores}
        return TimedBlock(size, Outcome.FITS, seconds, 10.0, conditions, was_held=was_held, of_a_script=True)

    return time


def candidates(speeds: dict[int, float], today: int | None) -> Candidates:
    others = {size: speed for size, speed in speeds.items() if size != today}
    return Candidates(
        sizes=tuple(sorted(others)),
        current=today,
        with_reserve=frozenset(others),
        cores=2,
        busy_fraction=BUSY_STARTS_FRACTION,
        by_start=others,
        extra_seconds=120.0,
    )


def compared(
    speeds: dict[int, float],
    today: int | None = 16,
    start: Callable[[int, float], TimedBlock] | None = None,
    what: Candidates | None = None,
    most_seconds: float = 1e6,
) -> tuple[SpeedComparison, Comparison]:
    comparison = SpeedComparison(
        candidates=what or candidates(speeds, today),
        run_block=start or starts(lambda size, _: speeds[size]),
        emit=lambda _: None,
        most_seconds=most_seconds,
    )
    return comparison, comparison.run()


def sizes_of(comparison: SpeedComparison) -> list[set[int]]:
    return [{*each.speeds()} for each in comparison.rounds]


def test_one_other_size_is_compared_with_today_s_at_once() -> None:
    comparison, found = compared({16: 100.0, 48: 250.0})
    assert sizes_of(comparison) == [{16, 48}] * EVALUATION_ROUNDS
    assert found.speedup is not None
    assert found.speedup.value == pytest.approx(2.5)
    assert 2.4 < found.speedup.low < 2.5 < found.speedup.high < 2.6  # they agree by luck: starts are known to differ
    assert (found.claim, found.recommended, found.fastest) == (SpeedClaim.FIGURE, 48, 48)


def test_of_several_sizes_the_smallest_that_is_as_fast_is_compared_with_today_s_and_the_fastest() -> None:
    comparison, found = compared({16: 20.0, 64: 99.0, 128: 100.0, 256: 101.0})
    assert sizes_of(comparison)[:3] == [{64, 128, 256}, {64, 128, 256}, {16, 64, 256}]
    assert (found.recommended, found.fastest) == (64, 256)
    assert found.rough == pytest.approx({128: 100.0})


def test_a_start_of_the_search_counts_as_a_round_and_does_not_outweigh_the_others() -> None:
    speeds = {16: 300.0, 512: 3_000.0, 1005: 5_500.0}
    what = replace(candidates(speeds, 16), by_start={512: 22_184.0, 1005: 9_000.0})
    _, found = compared(speeds, what=what)
    assert found.recommended == 1005


def test_the_rounds_that_chose_a_size_are_not_among_those_that_are_reported() -> None:
    lucky = starts(lambda size, number: 200.0 if number < 6 and size == 64 else 100.0)
    _, found = compared({16: 100.0, 64: 100.0, 128: 100.0}, start=lucky)
    assert (found.recommended, found.speedup and found.speedup.value) == (16, 1.0)


def test_starts_that_are_held_do_not_show_how_starts_differ() -> None:
    held = starts(lambda size, _: {16: 100.0, 48: 250.0}[size], was_held=True)
    _, found = compared({16: 100.0, 48: 250.0}, start=held)
    assert found.speedup is not None
    assert found.speedup.low < 2.5 / 1.05 < 2.5 * 1.05 < found.speedup.high


def test_without_today_s_size_no_speed_up_is_claimed() -> None:
    comparison, found = compared({16: 50.0, 32: 99.0, 40: 100.0}, today=None)
    assert sizes_of(comparison)[-1] == {32, 40}
    assert (found.recommended, found.speedup, set(found.speeds)) == (32, None, {32, 40})


def recommended(today: int, others: tuple[int, ...], noise: float, runs: int = 100) -> Counter[int | None]:
    """Count what is recommended with the README's speeds, each start with this noise, those of the search too."""
    found = Counter[int | None]()
    for seed in range(runs):
        rng = random.Random(-1 - seed)

        def noisy(size: int, _: int = 0, rng: random.Random = rng) -> float:
            return README[size] * rng.lognormvariate(0.0, noise)

        what = candidates({today: 0.0} | {size: noisy(size) for size in others}, today)
        found[compared({}, start=starts(noisy, was_held=True), what=what)[1].recommended] += 1
    return found


def test_the_example_of_the_readme_gets_the_size_at_the_bend_not_the_largest() -> None:
    found = recommended(16, (1024, 2542, 4816), noise=0.02, runs=400)
    assert found[1024] >= 4 * 80
    assert found[16] + found[None] == 0


def test_who_trains_at_the_bend_keeps_their_size_or_is_advised_nothing() -> None:
    assert recommended(1024, (2542, 4816), noise=0.02) == {1024: 100}
    found = recommended(1024, (2542, 4816), noise=0.05)
    assert found[2542] + found[4816] <= 2


def test_a_comparison_whose_time_ends_tells_what_its_rounds_show_so_far() -> None:
    def ended(after: int) -> Comparison:
        start, numbers = starts(lambda size, _: {16: 100.0, 48: 200.0 + 40 * (size % 7)}[size]), count()

        def failing(size: int, seconds: float) -> TimedBlock:
            if next(numbers) == after:
                raise TimeIsUp
            return start(size, seconds)

        return compared({16: 100.0, 48: 250.0}, start=failing)[1]

    assert (ended(7).recommended, ended(7).why) == (None, NotCompared.TIME_ENDED)
    assert [len(each.blocks) for each in ended(7).speed_rounds] == [2] * 3
    assert ended(2 * EVALUATION_ROUNDS).claim is SpeedClaim.FIGURE


def test_no_round_is_begun_that_the_time_left_is_too_short_for() -> None:
    comparison, found = compared({16: 100.0, 48: 100.0}, most_seconds=19.0)
    assert (len(comparison.rounds), found.why) == (1, NotCompared.TIME_ENDED)


def test_a_size_that_gives_no_speed_is_left_out_and_the_others_go_on() -> None:
    start = starts(lambda size, _: 10.0 * size)

    def failing(size: int, seconds: float) -> TimedBlock:
        return TimedBlock(size, Outcome.ERROR, error_message="out") if size == 128 else start(size, seconds)

    _, found = compared({16: 160.0, 64: 640.0, 128: 1280.0}, start=failing)
    assert (found.left_out, found.recommended) == ((128,), 64)
    _, none = compared({16: 1.0, 48: 1.0}, start=lambda size, _: TimedBlock(size, Outcome.ERROR))
    assert (none.recommended, none.why) == (None, NotCompared.NONE_TIMED)


def test_a_block_is_timed_over_all_its_steps_where_the_data_comes_in_bursts() -> None:
    bursts = TimedBlock(8, Outcome.FITS, (1.0, 1.0, 6.0, 0.0), micro_batches=2, of_a_script=True)
    assert bursts.samples_per_second == 8.0


@pytest.mark.parametrize(("ratios", "claim"), [((20.0, 9.0), SpeedClaim.AHEAD), ((20.0, 1.2), SpeedClaim.NOTHING)])
def test_beside_other_work_rounds_show_the_order_or_end_at_once(ratios: tuple[float, float], claim: SpeedClaim) -> None:
    busy = starts(lambda size, n: 100.0 * (1 if size == 16 else ratios[n // 2 % 2]), others_cores=1.3)
    what = replace(candidates({16: 100.0, 48: 300.0}, 16), shares_cores=True)
    comparison, found = compared({}, start=busy, what=what)
    is_ahead = claim is SpeedClaim.AHEAD
    assert (found.claim, found.recommended, found.speedup) == (claim, 48 if is_ahead else None, None)
    assert found.rounds <= (EVALUATION_ROUNDS if is_ahead else 2 * FEWEST_DISTURBED + 1)


def test_a_timed_size_keeps_the_steps_of_all_its_blocks() -> None:
    comparison, found = compared({16: 16.0, 48: 48.0})
    probe = comparison.probes(found)[0]
    assert (probe.batch_size, probe.purpose, probe.step_seconds) == (16, "timing", pytest.approx(1.0))
    assert len(probe.timed_step_seconds) == 2 * EVALUATION_ROUNDS


@pytest.mark.parametrize(("step_seconds", "steps"), [(None, 3), (10.0, 3), (0.1, 20), (0.0001, 500)])
def test_short_steps_are_timed_more_often(step_seconds: float | None, steps: int) -> None:
    assert steps_to_time(step_seconds) == steps
