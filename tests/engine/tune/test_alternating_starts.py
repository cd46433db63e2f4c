"""Sizes are compared by starts in turns, and no more is claimed than their pairs show."""

import random
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from engine.errors import CommandUntunable, TimeIsUp
from engine.machine.watch import usable_cores
from engine.results.result import Outcome, Probe
from engine.results.speed_rounds import SpeedClaim, Stage
from engine.speed.comparison import Comparison
from engine.speed.order import CLEAR_ROUNDS
from engine.tune.speed import in_turns as in_turns_module
from engine.tune.speed.alternating_starts import ENOUGH_ROUNDS, MOST_STARTS, Compared, mean_speed
from engine.tune.speed.in_turns import InTurns
from engine.tune.speed.timed_steps import steps_to_time
from tests.engine.quiet_machine import QuietMachine

README = {16: 1771.0, 128: 8056.0, 1024: 13882.0, 2542: 13593.0, 4816: 13766.0}
"""Samples a second of the starts of the README's own example."""


class Anew:
    """Blocks that are each a start of their own, of ten seconds."""

    were_held = False

    def __init__(self, start: Callable[[int], Probe]) -> None:
        self.time = start

    def seconds_of_block(self, _: int, /) -> float:
        return 10.0


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
            wall_seconds=10.0,
        )

    return start


def compared(
    speeds: dict[int, float],
    *,
    today: int | None,
    start: Callable[[int], Probe] | None = None,
    most_seconds: float = 1e6,
    seconds_left: float = 1e6,
    say: Callable[..., None] = lambda *_, **__: None,
) -> tuple[InTurns, Comparison]:
    """Compare today's size with all others of `speeds`."""
    others = {size: speed for size, speed in speeds.items() if size != today}
    what = Compared(today, tuple(sorted(others)), others, most_seconds)
    start = start or start_of(lambda size, _: speeds[size])
    in_turns = InTurns(what, Anew(start), say, lambda: seconds_left)
    return in_turns, in_turns.compare()


def noisy(speeds: dict[int, float], seed: int, noise: float) -> Callable[[int], Probe]:
    rng = random.Random(seed)
    return start_of(lambda size, _: speeds[size] * rng.lognormvariate(0.0, noise))


def sizes_of(in_turns: InTurns) -> list[list[int]]:
    return [list(each.speeds) for each in in_turns.rounds]


def test_two_sizes_alternate_so_that_each_is_the_first_one_equally_often() -> None:
    in_turns, found = compared({16: 100.0, 48: 250.0}, today=16)
    assert sizes_of(in_turns) == [[16, 48], [48, 16]] * (ENOUGH_ROUNDS // 2)
    assert found.speedup is not None
    assert (found.speedup.low, found.speedup.value, found.speedup.high) == pytest.approx((2.5,) * 3)
    assert (found.claim, found.recommended, found.rounds) == (SpeedClaim.FIGURE, 48, ENOUGH_ROUNDS)
    assert {size: speed.value for size, speed in found.speeds.items()} == pytest.approx({16: 100.0, 48: 250.0})


def test_of_several_sizes_the_smallest_that_is_not_slower_is_compared_with_today_s() -> None:
    in_turns, found = compared({16: 20.0, 64: 99.0, 128: 100.0, 256: 101.0}, today=16)
    assert sizes_of(in_turns)[:3] == [[64, 128, 256], [256, 128, 64], [16, 64]]
    assert (found.recommended, found.rounds) == (64, ENOUGH_ROUNDS)
    assert found.speedup is not None
    assert found.speedup.value == pytest.approx(99 / 20)
    assert found.rough == pytest.approx({128: 100.0, 256: 101.0})


def test_a_size_that_is_clearly_slower_in_every_round_is_not_started_again() -> None:
    in_turns, found = compared({16: 20.0, 64: 60.0, 128: 100.0, 256: 101.0}, today=16)
    assert sizes_of(in_turns)[:2] == [[64, 128, 256], [256, 128]]
    assert found.recommended == 128


def test_the_starts_that_chose_a_size_are_not_among_those_that_are_reported() -> None:
    lucky = start_of(lambda size, number: 200.0 if number < 4 and size == 64 else 100.0)
    in_turns, found = compared({16: 100.0, 64: 100.0, 128: 100.0}, today=16, start=lucky)
    assert [each.stage for each in in_turns.rounds[:3]] == [Stage.SELECTION, Stage.SELECTION, Stage.EVALUATION]
    assert (found.recommended, found.speedup and found.speedup.value) == (16, 1.0)


def test_a_machine_that_slows_down_slowly_does_not_change_the_ratio() -> None:
    slower = start_of(lambda size, number: {16: 100.0, 48: 150.0}[size] * 0.97**number)
    _, found = compared({16: 100.0, 48: 150.0}, today=16, start=slower)
    assert found.speedup is not None
    assert found.speedup.value == pytest.approx(1.5, rel=0.01)


def test_today_s_size_stays_where_no_other_is_shown_to_be_faster() -> None:
    _, found = compared({16: 100.0, 48: 101.0}, today=16)
    assert (found.claim, found.recommended, found.speedup and found.speedup.value) == (SpeedClaim.FIGURE, 16, 1.0)


def test_a_smaller_size_is_recommended_where_it_is_shown_to_be_faster() -> None:
    _, found = compared({16: 150.0, 48: 100.0}, today=48)
    assert (found.recommended, found.speedup and found.speedup.value) == (16, pytest.approx(1.5))


def test_without_today_s_size_two_others_are_compared_and_no_speed_up_is_claimed() -> None:
    in_turns, found = compared({16: 50.0, 32: 99.0, 40: 100.0}, today=None)
    assert sizes_of(in_turns)[-1] in ([32, 40], [40, 32])
    assert (found.recommended, found.speedup, set(found.speeds)) == (32, None, {32, 40})


def test_a_wide_interval_still_claims_a_clear_gain() -> None:
    start = start_of(lambda size, number: {16: 100.0, 48: 300.0}[size] * (1 + number * 7 % 5 / 10))
    in_turns, found = compared({16: 100.0, 48: 300.0}, today=16, start=start)
    assert (found.claim, found.recommended, found.speeds) == (SpeedClaim.AT_LEAST, 48, {})
    assert len(in_turns.timed) == MOST_STARTS  # a further pair may still raise the lower end


def test_wild_starts_go_on_to_the_most_starts_and_claim_nothing() -> None:
    wild = start_of(lambda _, number: 100.0 * 3 ** ((number * 7 % 5) - 2))
    in_turns, found = compared({16: 100.0, 48: 100.0}, today=16, start=wild)
    assert (found.claim, found.recommended, found.speeds) == (SpeedClaim.NOTHING, None, {})
    assert "speed not measurable here now: 48 is between" in (found.reason or "")
    assert [len(probe.timed_step_seconds) for probe in in_turns.probes(found)] == [MOST_STARTS] * 2


@pytest.mark.parametrize("seed", range(40))
def test_no_comparison_has_more_starts_than_is_said(seed: int) -> None:
    speeds = dict.fromkeys((16, 64, 128, 256), 100.0)
    in_turns, found = compared(speeds, today=16, start=noisy(speeds, seed, 0.1))
    assert len(in_turns.timed) <= MOST_STARTS
    assert (found.rounds >= ENOUGH_ROUNDS, found.rounds % 2) == (True, 0)


def recommended(today: int, others: tuple[int, ...], noise: float, runs: int = 100) -> Counter[int | None]:
    """Count what is recommended with the README's speeds, each start with this noise, those of the search too."""
    found = Counter[int | None]()
    for seed in range(runs):
        rng = random.Random(-1 - seed)
        by_start = {size: README[size] * rng.lognormvariate(0.0, noise) for size in others}
        what = Compared(today, others, by_start)
        in_turns = InTurns(what, Anew(noisy(README, seed, noise)), lambda *_, **__: None, lambda: 1e6)
        found[in_turns.compare().recommended] += 1
    return found


def test_the_example_of_the_readme_gets_the_size_at_the_bend_not_the_largest() -> None:
    found = recommended(16, (1024, 2542, 4816), noise=0.05)
    assert found[1024] >= 90
    assert found[4816] <= 3
    assert found[16] + found[None] == 0


def test_who_trains_at_the_bend_keeps_their_size_or_is_advised_nothing() -> None:
    assert recommended(1024, (2542, 4816), noise=0.02) == {1024: 100}
    found = recommended(1024, (2542, 4816), noise=0.05)
    assert found[1024] >= 50
    assert found[2542] + found[4816] <= 2


@pytest.mark.parametrize(
    ("fails", "reason"),
    [
        (TimeIsUp(), "the time budget ended after 3 of at least 6 pairs of starts"),
        (CommandUntunable("ended_early", "the training ended"), "a start could not be timed: the log says why"),
    ],
)
def test_a_comparison_that_ends_early_says_why(fails: Exception, reason: str) -> None:
    start, numbers = start_of(lambda *_: 100.0), count()

    def failing(size: int) -> Probe:
        if next(numbers) == 7:
            raise fails
        return start(size)

    in_turns, found = compared({16: 100.0, 48: 100.0}, today=16, start=failing)
    assert (found.recommended, found.reason) == (None, f"speed not measured: {reason}")
    assert [sum(block.steps for block in each.blocks) for each in found.speed_rounds] == [4] * 3


def test_no_round_is_begun_that_the_time_left_is_too_short_for() -> None:
    in_turns, found = compared({16: 100.0, 48: 100.0}, today=16, seconds_left=19.0)
    assert (in_turns.timed, found.reason) == (
        [],
        "speed not measured: the time budget ended after 0 of at least 6 pairs of starts",
    )


def test_a_comparison_ends_when_it_has_taken_as_long_as_it_may() -> None:
    in_turns, found = compared({16: 100.0, 48: 100.0}, today=16, most_seconds=90.0)
    assert (len(in_turns.timed), found.recommended) == (8, None)
    assert "may take 2 min at most" in (found.reason or "")


def test_a_size_that_does_not_train_again_gives_no_speed() -> None:
    refused = {16: 1.0, 48: 1.0}
    said: list[object] = []
    _, found = compared(
        refused,
        today=16,
        start=lambda size: Probe(size, Outcome.OUT_OF_MEMORY, error_message="CUDA out of memory"),
        say=lambda _, **content: said.append(content.get("message")),
    )
    assert found.reason == "speed not measured: a start could not be timed: the log says why"
    assert said[-1] == "a start could not be timed: batch 16 gave no speed: CUDA out of memory"


def test_the_events_name_the_round_and_the_time_left_at_most() -> None:
    said: list[dict[str, object]] = []

    def say(event: str, **content: object) -> None:
        if event == "timing":
            said.append(content)

    what = Compared(16, (64, 128), {64: 100.0, 128: 100.0}, 900.0)
    InTurns(what, Anew(start_of(lambda *_: 100.0)), say, lambda: 1e6).compare()
    assert [each["round"] for each in said] == list(range(1, 9))
    assert (said[0]["stage"], said[0]["batch_sizes"], said[-1]["batch_sizes"]) == ("selection", [64, 128], [16, 64])
    left = [float(str(each["seconds_left_at_most"])) for each in said]
    assert left == sorted(left, reverse=True)
    assert left[0] == 240.0


def test_a_start_is_timed_over_all_its_steps_where_the_data_comes_in_bursts() -> None:
    bursts = Probe(8, Outcome.FITS, step_seconds=1.0, timed_step_seconds=(1.0, 1.0, 6.0, 0.0), samples_per_second=16.0)
    assert mean_speed(bursts) == 8.0  # two micro-batches in each step


class Busy(QuietMachine):
    def read(self) -> dict[str, Any]:
        return {"others_cores": 0.65 * len(usable_cores())}


@pytest.mark.parametrize(("pairs", "claim"), [((20.0, 9.0), SpeedClaim.AHEAD), ((20.0, 1.2), SpeedClaim.NOTHING)])
def test_beside_other_work_pairs_show_the_order_or_end_at_once(
    pairs: tuple[float, float], claim: SpeedClaim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_turns_module, "MachineWatch", Busy)
    start = start_of(lambda size, number: 100.0 if size == 16 else 100.0 * pairs[number // 2 % 2])
    what = Compared(16, (48,), {48: 300.0}, shares_cores=True)
    in_turns = InTurns(what, Anew(start), lambda *_, **__: None, lambda: 1e6)
    found = in_turns.compare()
    is_ahead = claim is SpeedClaim.AHEAD
    assert (found.claim, found.recommended, found.speedup) == (claim, 48 if is_ahead else None, None)
    assert found.rounds == (CLEAR_ROUNDS if is_ahead else 3), "after three pairs, quiet ones could not help any more"
    assert {b.others_cores for r in found.speed_rounds for b in r.blocks} == {Busy().read()["others_cores"]}


def test_a_timed_size_keeps_the_steps_of_all_its_starts() -> None:
    in_turns, found = compared({16: 16.0, 48: 48.0}, today=16)
    probe = in_turns.probes(found)[0]
    assert (probe.batch_size, probe.purpose, probe.step_seconds) == (16, "timing", pytest.approx(1.0))
    assert len(probe.timed_step_seconds) == 2 * ENOUGH_ROUNDS


@pytest.mark.parametrize(("step_seconds", "steps"), [(None, 6), (10.0, 6), (0.1, 20), (0.0001, 500)])
def test_short_steps_are_timed_more_often(step_seconds: float | None, steps: int) -> None:
    assert steps_to_time(step_seconds) == steps


def test_a_start_of_the_search_does_not_outweigh_rounds_that_all_show_a_size_to_be_slower() -> None:
    by_start, speeds = {512: 22_184.0, 1005: 9_000.0}, {16: 300.0, 512: 3_000.0, 1005: 5_500.0}
    what = Compared(16, (512, 1005), by_start)
    found = InTurns(what, Anew(noisy(speeds, 1, 0.02)), lambda *_, **__: None, lambda: 1e6).compare()
    assert found.recommended == 1005
