"""When the evaluation of a choice ends."""

import math

import pytest

from engine.race.speed.evaluation import CLAIMABLE_HALF_WIDTH, Evaluation
from engine.race.speed.ratios import Round


@pytest.mark.parametrize(("run_to_run", "is_over"), [(0.0, False), (0.02, False), (0.08, True)])
def test_rounds_need_not_show_a_ratio_more_closely_than_other_starts_would_repeat_it(
    run_to_run: float, is_over: bool
) -> None:
    pair = frozenset({16, 512})
    rounds = [
        Round({16: 0.0, 512: math.log(8) + off}, {}, held=pair) for off in (-0.07, 0.07, -0.06, 0.06, -0.05, 0.05)
    ]
    own = Evaluation(rounds, shares_cores=True, run_to_run=run_to_run)
    half_width = own.ratio(512, 16).half_width
    assert CLAIMABLE_HALF_WIDTH < half_width < 0.078
    assert own.is_over([(512, 16)], None, half_width=0.03, waits=False, is_late=False) is is_over
    assert not own.is_over([(512, 16)], None, half_width=None, waits=False, is_late=False)


def test_starts_that_agree_by_luck_show_no_more_than_is_known_of_how_starts_differ() -> None:
    rounds = [Round({16: 0.0, 512: math.log(8)}, {}) for _ in range(9)]
    own = Evaluation(rounds, shares_cores=True, run_to_run=0.08, start_to_start=0.08)
    assert own.gain(512, 16).spread == pytest.approx(math.exp(2 * 1.96 * 0.08 / 3))
