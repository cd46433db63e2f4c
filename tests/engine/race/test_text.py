"""What a race says of losses and of money: no more is claimed than is known."""

import math

import pytest

from engine.race.numbers import Sameness, compare_numbers
from engine.race.text import describe_basis, describe_saving
from engine.results.savings import savings_assuming

ASSUMED = {"price_per_hour_usd": 0.6, "hours_per_run": 2.0, "runs_per_year": 100}


@pytest.mark.parametrize(
    ("speedup", "low", "said"),
    [
        (1.0355, 1.0018, "$4.11 [$0.21, $7.60]"),
        (None, 1.0018, "at least $0.21"),
        (1.0355, 1.00001, ""),
        (None, None, ""),
    ],
)
def test_a_saving_has_the_ends_of_its_interval_or_the_lower_one_alone(
    speedup: float | None, low: float | None, said: str
) -> None:
    high = None if low is None else 1.0676
    assert describe_saving(savings_assuming(speedup, speedup_low=low, speedup_high=high, **ASSUMED)) == said


def test_what_is_assumed_of_a_saving_is_said_where_one_is_named() -> None:
    money = savings_assuming(1.5, speedup_low=1.4, speedup_high=1.6, **ASSUMED)
    assert describe_basis(money) == "The saving assumes $0.60/h, 2 h a run, 100 runs a year."
    assert describe_basis(savings_assuming(None, **ASSUMED)) == ""


TODAY = [2.0, 1.5, 1.25]


@pytest.mark.parametrize(
    ("losses", "own", "sameness"),
    [
        (TODAY, 0.0, Sameness.BITS),
        ([2.0, 1.5, 1.2501], 0.0, Sameness.ROUNDING),
        ([2.0, 1.5, 1.26], 0.0, Sameness.DIFFERS),
        ([2.0, 1.5, 1.26], 0.004, Sameness.ROUNDING),  # today's training itself differs by as much
        ([2.0, math.nan, 1.25], 0.0, Sameness.DIFFERS),
        ([2.0, 1.5], 0.0, Sameness.DIFFERS),
        ([], 0.0, Sameness.UNKNOWN),
    ],
)
def test_losses_are_the_same_as_far_as_rounding_and_todays_own_differences_explain(
    losses: list[float], own: float, sameness: Sameness
) -> None:
    found = compare_numbers(losses, TODAY, own, tolerance=0.001)
    assert found.sameness is sameness
    assert found.is_offered == (sameness in (Sameness.BITS, Sameness.ROUNDING))
