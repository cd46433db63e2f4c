"""What the log says of a comparison that ended."""

from dataclasses import replace

import pytest

from engine.facts.not_compared import NotCompared
from engine.facts.speed_rounds import ComparedSizes, SpeedClaim
from engine.race.speed.comparison import Comparison, comparison_lines

BUSY = Comparison(
    claim=SpeedClaim.NOTHING,
    compared=ComparedSizes(512, 16, 4.6, 11.5),
    rounds=12,
    quiet_rounds=3,
    others_cores=1.6,
    cores=2,
)


def test_a_cpu_that_other_programs_used_is_the_reason_and_no_factor_is_named() -> None:
    """Beside other programs a factor of 11 was shown where the truth was 1: nobody may read one in the log."""
    text = "\n".join(comparison_lines(BUSY, 16, shares_cores=True))
    assert "speed not measurable here now: other programs ran in 9 of 12 rounds" in text
    assert "512" not in text
    assert "4.6" not in text


def test_a_gpu_does_not_share_the_cores_so_its_factor_is_named() -> None:
    assert "512 is 4.6 to 11.5x" in comparison_lines(BUSY, 16, shares_cores=False)[0]


@pytest.mark.parametrize(
    ("found", "is_cause"),
    [
        (replace(BUSY, quiet_rounds=6), False),  # their mean was 1.6 cores: of rounds that do not count
        (replace(BUSY, others_cores=0.02), True),  # in bursts
    ],
)
def test_other_programs_are_the_reason_only_by_the_rule_that_decided(found: Comparison, is_cause: bool) -> None:
    assert ("512 is" not in comparison_lines(found, 16, shares_cores=True)[0]) is is_cause


def test_a_comparison_that_ended_early_keeps_its_own_reason() -> None:
    ended = replace(BUSY, compared=None, why=NotCompared.TIME_ENDED)
    assert comparison_lines(ended, 16, shares_cores=True)[0] == "the time budget ended before the speeds were compared"
