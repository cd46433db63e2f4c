"""Steadiness of step times, the probe that counts for each batch size, and the interval of a ratio."""

import math
import random

import pytest

from benchmarks.timing_simulation import simulate
from engine.results.intervals import NORMAL_95, Interval, interval
from engine.results.result import Outcome, Probe, Purpose
from engine.results.stats import decisive_probes, is_steady


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
