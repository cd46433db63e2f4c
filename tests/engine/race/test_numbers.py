"""Whether a variant trains the same: to the bit, within rounding, or not."""

import math

import pytest

from engine.race.numbers import Sameness, compare_numbers

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
