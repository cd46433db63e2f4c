"""How many rounds a comparison of speeds still takes, by the rounds so far: checked against the decision itself."""

import random
from statistics import median

import pytest

from engine.facts.speed_rounds import SpeedBlock, SpeedRound, Stage
from engine.race.speed.outlook import outlook
from engine.race.speed.rounds import Candidates, NextRound
from engine.race.speed.selection import decide

SIZES = (16, 32, 60)
SECONDS = {16: 0.020, 32: 0.036, 60: 0.062}  # of a step: the larger, the faster a sample
CANDIDATES = Candidates(SIZES, current=16, with_reserve=frozenset(SIZES), cores=2)


def comparison(noise: float, others_cores: float, seed: int) -> list[SpeedRound]:
    """Play a comparison on a machine with that noise of each block."""
    rng, rounds = random.Random(seed), list[SpeedRound]()
    while isinstance(step := decide(CANDIDATES, rounds), NextRound):
        blocks = [SpeedBlock(s, SECONDS[s] * rng.lognormvariate(0, noise), 0, 1, others_cores) for s in step.entries]
        each = 0.25 if step.stage is Stage.SELECTION else 0.5
        rounds.append(SpeedRound(step.stage, each * len(blocks), tuple(blocks)))
    return rounds


def test_nothing_is_expected_while_no_spread_is_known() -> None:
    assert outlook([], CANDIDATES) is None
    assert outlook(comparison(0.01, 0.0, 1)[:2], CANDIDATES) is None


@pytest.mark.parametrize(("noise", "others_cores"), [(0.002, 0.0), (0.03, 1.0), (0.3, 1.0)])
def test_at_half_time_the_seconds_left_are_about_right(noise: float, others_cores: float) -> None:
    errors = []
    for seed in range(7):
        rounds = comparison(noise, others_cores, seed)
        left = sum(r.seconds for r in rounds[len(rounds) // 2 :])
        expected = outlook(rounds[: len(rounds) // 2], CANDIDATES)
        assert expected is not None
        errors.append(abs(expected.seconds - left) / left)
    assert median(errors) <= 0.5


def test_rounds_that_contradict_each_other_take_all_the_time_there_is() -> None:
    rounds = comparison(0.5, 1.0, 1)[:8]
    expected = outlook(rounds, CANDIDATES)
    assert expected is not None
    spent = sum(r.seconds for r in rounds)
    assert CANDIDATES.extra_seconds / 2 < expected.seconds <= 1.1 * (CANDIDATES.extra_seconds + spent)
