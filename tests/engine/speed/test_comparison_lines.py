"""What the log says of a comparison that ended."""

from __future__ import annotations

from dataclasses import replace

from engine.results.intervals import Interval
from engine.results.speed_rounds import SpeedClaim
from engine.speed.comparison import Comparison, comparison_lines, reason

BUSY = Comparison(
    claim=SpeedClaim.NOTHING,
    reason=reason(SpeedClaim.NOTHING, (512, 16, Interval(4.6, 7.0, 11.5))),
    others_cores=1.6,
    cores=2,
)


def test_a_cpu_that_other_programs_used_is_the_reason_and_no_factor_is_named() -> None:
    """Beside other programs a factor of 11 was shown where the truth was 1: nobody may read one in the log."""
    text = "\n".join(comparison_lines(BUSY, shares_cores=True))
    assert "speed not measurable here now: other programs used 1.6 of 2 cores" in text
    assert "512" not in text
    assert "4.6" not in text


def test_a_gpu_does_not_share_the_cores_so_its_factor_is_named() -> None:
    assert "512 is between 4.6x and 11.5x" in comparison_lines(BUSY, shares_cores=False)[0]
    assert "512 is between" in comparison_lines(replace(BUSY, others_cores=0.02), shares_cores=True)[0]


def test_a_comparison_that_ended_early_keeps_its_own_reason() -> None:
    ended = replace(BUSY, reason="the time budget ended before the speeds were compared")
    assert comparison_lines(ended, shares_cores=True)[0] == ended.reason
