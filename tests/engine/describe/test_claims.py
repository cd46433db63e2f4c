"""What a result says of its speed-up where a sender left a part of it out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.describe.key_figures import key_line
from engine.describe.result import answer_of
from engine.describe.speed import claim_in
from engine.results.speed_rounds import SpeedClaim
from tests.factories.speeds import make_bound_result


@pytest.mark.parametrize("missing", ["speedup_low", "speedup_high"])
def test_a_lower_bound_without_its_interval_is_not_claimed(missing: str) -> None:
    whole = make_bound_result()
    assert claim_in(whole) is SpeedClaim.AT_LEAST
    damaged = replace(whole, **{missing: None})
    assert claim_in(damaged) is SpeedClaim.NOTHING
    assert "at least" not in answer_of(damaged).text
    assert "at least" not in key_line(damaged)
