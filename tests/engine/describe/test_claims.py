"""What a result says of its speed-up where only a part of it is known."""

from dataclasses import replace

import pytest

from engine.describe.answer import is_short
from engine.describe.result import answer_of
from engine.describe.speed import claim_in
from engine.results.speed_rounds import SpeedClaim
from tests.factories.speeds import make_bound_result, make_kept_result
from tests.in_words.documents import key_line


@pytest.mark.parametrize("missing", ["speedup_low", "speedup_high"])
def test_a_lower_bound_without_its_interval_is_not_claimed(missing: str) -> None:
    whole = make_bound_result()
    assert claim_in(whole) is SpeedClaim.AT_LEAST
    damaged = replace(whole, **{missing: None})
    assert claim_in(damaged) is SpeedClaim.NOTHING
    assert "at least" not in answer_of(damaged).text
    assert "at least" not in key_line(damaged)


def test_an_order_is_said_with_its_rounds_and_without_a_factor() -> None:
    whole = make_bound_result()
    assert whole.speed is not None
    speed = replace(whole.speed, claim=SpeedClaim.AHEAD, rounds=10, quiet_rounds=0, others_cores=1.3, cores=2)
    answer = answer_of(replace(whole, speed=speed, speedup=None, speedup_low=None, speedup_high=None))
    assert answer.sentence.endswith(" in 10 of 10 rounds.")
    assert is_short(answer.sentence)
    assert answer.notes[0] == "How much is not known: other programs used 1.3 of 2 cores and slow small batches more."


def test_today_s_size_that_is_kept_beside_other_work_says_what_may_be_missed() -> None:
    whole = make_kept_result()
    assert whole.speed is not None
    assert answer_of(whole).notes == ()
    speed = replace(whole.speed, quiet_rounds=0, others_cores=1.3, cores=2)
    notes = answer_of(replace(whole, speed=speed, device=replace(whole.device, kind="cpu"))).notes
    assert notes == ("A smaller gain shows on a quiet machine: other programs used 1.3 of 2 cores.",)
