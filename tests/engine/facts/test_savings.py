"""Waste, speed-up and money follow their formulas; steady times, decisive probes, intervals; what is recommended."""

import math
import random
from dataclasses import replace

import pytest

from benchmarks.timing_simulation import simulate
from engine.describe.result import answer_of
from engine.facts.intervals import NORMAL_95, Interval, interval
from engine.facts.result import (
    Boundary,
    DeviceFacts,
    Outcome,
    Point,
    Probe,
    Purpose,
    Reason,
    RunResult,
    Timings,
)
from engine.facts.savings import cost_per_million_samples_usd, savings, waste
from engine.facts.speed_rounds import SpeedClaim
from engine.facts.stats import decisive_probes, is_steady
from engine.race.speed.comparison import Comparison
from engine.settings.spec import RunSpec
from engine.trainings.build_result import answer
from tests.factories import make_probe, make_refusal, make_spec


def point(samples_per_second: float | None, memory_bytes: int | None = None) -> Point:
    return Point(16, samples_per_second, None, memory_bytes, None, memory_bytes)


def exactly(speedup: float) -> Interval:
    return Interval(speedup, speedup, speedup)


def test_the_classic_example_of_2_5x_saves_48_cents_a_run_and_48_dollars_a_year():
    money = savings(RunSpec("bert", price_per_hour_usd=0.40, hours_per_run=2, runs_per_year=100), exactly(2.5))
    assert money.per_run_usd == pytest.approx(0.48)
    assert money.per_year_usd == pytest.approx(48.0)


def test_the_saving_is_as_uncertain_as_the_speed_up():
    money = savings(RunSpec("bert", price_per_hour_usd=1, hours_per_run=2, runs_per_year=10), Interval(0.8, 1, 2))
    assert (money.per_run_usd_low, money.per_run_usd, money.per_run_usd_high) == pytest.approx((-0.5, 0, 1))
    assert (money.per_year_usd_low, money.per_year_usd, money.per_year_usd_high) == pytest.approx((-5, 0, 10))


def test_without_a_speed_up_there_is_no_saving():
    money = savings(RunSpec("bert"), None)
    assert (money.per_run_usd, money.per_year_usd_high) == (None, None)


def test_waste_is_capacity_minus_memory_at_both_sizes():
    unused = waste(1000, point(1, 100), point(1, 900))
    assert (unused.at_current_bytes, unused.at_current_fraction) == (900, 0.9)
    assert (unused.at_recommended_bytes, unused.at_recommended_fraction) == (100, 0.1)


def test_waste_at_a_size_that_was_not_measured_is_unknown():
    assert waste(1000, None, point(1, None)).at_current_bytes is None


def test_the_context_counts_on_a_whole_card_and_what_others_held_does_not():
    probe = Probe(16, Outcome.FITS, peak_allocated_bytes=80, peak_reserved_bytes=90, device_used_bytes=95)
    alone = DeviceFacts("cuda:0", "cuda", "card", 100, limit_bytes=100)
    assert Point.of(probe, alone).memory_bytes == 95
    assert Point.of(probe, replace(alone, foreign_used_bytes=3)).memory_bytes == 92
    listed = {"foreign_processes": ({"pid": 1, "used_bytes": None},), "foreign_used_bytes": None}
    assert Point.of(probe, replace(alone, **listed)).memory_bytes == 90
    assert Point.of(probe, replace(alone, limit_bytes=92)).memory_bytes == 90


def test_a_million_samples_cost_the_price_of_the_hours_they_take() -> None:
    assert cost_per_million_samples_usd(3.6, 1_000) == pytest.approx(1.0)


@pytest.mark.parametrize(("price", "speed"), [(None, 100.0), (1.0, None), (1.0, 0.0)])
def test_without_a_price_or_a_speed_there_is_no_cost(price: float | None, speed: float | None) -> None:
    assert cost_per_million_samples_usd(price, speed) is None


CARD = DeviceFacts("cuda:0", "cuda", "NVIDIA A10", 2**34, limit_bytes=2**34)
FASTEST_IS_4 = Comparison(
    claim=SpeedClaim.FIGURE, recommended=4, fastest=4, speeds={2: Interval(9, 10, 11), 4: Interval(19, 20, 21)}
)


def compared(today: int, *refused: int) -> RunResult:
    probes = [make_probe(1), make_probe(2), make_probe(4), *map(make_refusal, refused)]
    boundary = Boundary(4, certified=False, refused_batch_size=None, reason=Reason.MAX_BATCH_SIZE)
    spec = make_spec(current_batch_size=today, max_batch_size=4)
    return answer(spec, CARD, boundary, probes, FASTEST_IS_4, environment={}, timings=Timings())


def test_nothing_below_a_size_of_today_that_nobody_refused_is_recommended() -> None:
    result = compared(16)
    assert result.recommended is None
    assert result.speed is not None
    assert (result.fastest, result.speedup) == (None, None)
    assert result.speed.reason == "batch size 16 was not measured here: no speed to compare with"
    assert answer_of(result).text.startswith("At least 4 fit. None is recommended. Batch size 16 was not measured here")


@pytest.mark.parametrize(("today", "refused"), [(16, (5,)), (4, ()), (16, (16,))])
def test_where_todays_size_trained_or_was_refused_the_fastest_is_recommended(today: int, refused: tuple) -> None:
    result = compared(today, *refused)
    assert result.recommended is not None
    assert result.recommended.batch_size == 4


def probe(batch_size: int, samples_per_second: float | None = None, **changes) -> Probe:
    seconds = None if samples_per_second is None else batch_size / samples_per_second
    return Probe(
        batch_size,
        **{"outcome": Outcome.FITS, "samples_per_second": samples_per_second, "step_seconds": seconds} | changes,
    )


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([1.0, 1.0], False),
        ([1.0, 1.01, 1.03], True),
        ([1.0, 1.01, 1.05], False),
        ([1.0, 1.01, 1.0, 0.99, 1.0, 1.01], True),
        ([1.0, 1.5, 1.0, 1.5, 1.0, 1.5], False),
        ([9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], True),
    ],
)
def test_timing_is_steady_when_both_halves_agree_with_the_whole(seconds, expected):
    assert is_steady(seconds) is expected


def test_a_soak_that_fits_leaves_the_timed_probe_standing():
    timed, soak = probe(64, 100), probe(64, purpose=Purpose.SOAK)
    assert decisive_probes([timed, soak])[64] is timed


def test_a_refusal_in_a_used_process_does_not_overrule_a_fit():
    fitted, spoiled = probe(64, 100), probe(64, outcome=Outcome.OUT_OF_MEMORY)
    assert decisive_probes([fitted, spoiled])[64] is fitted


def test_a_soak_that_fails_overrules_the_probe_that_fitted():
    failed = probe(64, purpose=Purpose.SOAK, outcome=Outcome.OUT_OF_MEMORY, fresh_process=True)
    assert decisive_probes([probe(64, 100), failed])[64] is failed


def test_a_timing_adds_the_speed_and_leaves_the_memory_as_it_was():
    tried, timed = probe(64, peak_allocated_bytes=7), probe(64, 100, purpose=Purpose.TIMING)
    together = decisive_probes([tried, timed])[64]
    assert (together.memory_bytes, together.samples_per_second, together.purpose) == (7, 100, Purpose.SEARCH)


def test_six_equal_rounds_leave_no_doubt():
    assert interval([2.0] * 6) == Interval(2.0, 2.0, 2.0)


def test_with_six_rounds_the_interval_is_their_whole_range():
    assert interval([5, 1, 2, 3, 4, 6]) == Interval(1, 3.5, 6)


@pytest.mark.parametrize(("rounds", "outside"), [(6, 0), (7, 2), (8, 3), (10, 8), (20, 52)])
def test_the_ends_are_the_ranks_of_the_signed_rank_table(rounds, outside):
    """`outside` is the critical value of Wilcoxon's table (two-sided, 5 %): how many pairwise means lie beyond."""
    values = [2.0**i for i in range(rounds)]
    means = sorted((a + b) / 2 for i, a in enumerate(values) for b in values[i:])
    found = interval(values)
    assert (found.low, found.high) == (means[outside], means[-1 - outside])


def test_one_wild_round_of_eight_hardly_moves_the_estimate():
    steady = [0.10, 0.11, 0.09, 0.10, 0.12, 0.10, 0.09]
    assert interval([*steady, 9.0]).value == pytest.approx(interval(steady).value, abs=0.01)


@pytest.mark.parametrize("wild", [0.0, 0.2])
def test_the_interval_holds_the_truth_in_about_95_of_100_samples(wild):
    rng = random.Random(wild)

    def one_round() -> float:
        return 0.5 + rng.gauss(0, 0.02) + (rng.choice((-1, 1)) * rng.random() if rng.random() < wild else 0.0)

    samples = [interval([one_round() for _ in range(10)]) for _ in range(1000)]
    assert sum(s.low <= 0.5 <= s.high for s in samples) / 1000 == pytest.approx(0.951, abs=0.025)


def test_logarithms_become_ratios():
    ratio = Interval(0.0, math.log(2), math.log(4)).exp()
    assert (ratio.low, ratio.value, ratio.high) == pytest.approx((1, 2, 4))
    assert ratio.spread == pytest.approx(4)


def test_an_error_that_the_values_cannot_show_widens_both_sides_by_its_own_share():
    widened = Interval(-0.03, 0.0, 0.0).widened(0.04 / NORMAL_95)
    assert (widened.low, widened.value, widened.high) == pytest.approx((-0.05, 0.0, 0.04))


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["quiet", "bursts"])
def test_the_interval_holds_the_truth_and_the_recommendation_is_good(machine):
    """The same 60 runs every time; 4,000 of each kind are in the benchmark's results."""
    row = simulate(machine, 0.02, runs=60)
    assert row["interval_holds_truth"] >= 0.88
    assert row["slower_than_today"] == 0
    assert row["missed_gain_p50"] <= 0.03
    assert row["abstained"] <= 0.2


@pytest.mark.slow
def test_on_a_shared_machine_most_runs_end_with_a_statement_and_none_is_false():
    row = simulate("shared", 0.02, runs=40)
    assert row["at_least"] > row["figures"]
    assert row["at_least_is_true"] >= 0.95
    assert row["slower_than_today"] == 0
