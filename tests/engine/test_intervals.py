"""The interval of a ratio holds the truth as often as it says, also where some rounds are wild."""

import math
import random

import pytest

from engine.results.intervals import NORMAL_95, Interval, interval


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
