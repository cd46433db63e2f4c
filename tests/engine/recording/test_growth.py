"""Growth of the memory after each step is told from noise, and the step at which it ends is foretold."""

import random

import pytest

from engine.recording.growth import growth_of
from engine.text.units import MIB


def samples(held: list[float]) -> list[tuple[int, float, int, int]]:
    return [(step, step / 10, round(each), round(each)) for step, each in enumerate(held, 1)]


@pytest.mark.parametrize("slope_mib", [0.05, 0.5, 10.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_step_of_death_lies_within_a_tenth(slope_mib: float, seed: int) -> None:
    noise = random.Random(seed)
    held = [300 * MIB + slope_mib * MIB * step + noise.gauss(0, 0.5 * MIB) for step in range(400)]
    found = growth_of(samples(held), round(slope_mib * MIB * 1_000))
    assert found is not None
    expected, earliest, latest = found.ends_at
    assert expected == pytest.approx(1_400, rel=0.1)
    assert earliest <= expected <= latest


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["still", "warms up", "one step up", "varies", "fills slowly"])
def test_what_does_not_go_on_growing_is_no_growth(kind: str, seed: int) -> None:
    noise, held = random.Random(seed), []
    for step in range(400):
        more = {
            "still": 0.0,
            "warms up": min(step, 60) * MIB,
            "one step up": (step > 220) * 40 * MIB,
            "varies": noise.uniform(0, 80) * MIB,
            "fills slowly": 90 * MIB * (1 - 0.985**step),
        }[kind]
        held.append(500 * MIB + more + noise.gauss(0, MIB))
    assert growth_of(samples(held), 0) is None


def test_a_short_run_says_nothing() -> None:
    assert growth_of(samples([step * MIB for step in range(60)]), 0) is None
    assert growth_of([], 0) is None
