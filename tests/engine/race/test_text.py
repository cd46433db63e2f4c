"""What a race says of money: with its interval, rounded so that no more is claimed than is known."""

import pytest

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
