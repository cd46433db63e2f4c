"""A training whose memory is not still is watched for more steps, as far as that takes no minute."""

import pytest

from engine.search.stillness import MOST_STEPS, Watched, has_fallen, is_more, is_rising, steps_to_watch

MIB = 2**20


def watched(**changes: object) -> Watched:
    kept = {"batch_size": 16, "steps": 5, "step_seconds": 0.01, "is_varied": False, "is_rising": False}
    return Watched(**(kept | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("peaks", [[], [1], [5, 9, 9, 9, 9], [9, 9, 9, 9, 9], [5, 9, 9, 9, 9 + 1e-9]])
def test_a_training_that_only_makes_its_optimizers_state_is_still(peaks: list[int]) -> None:
    found = [round(MIB * each) for each in peaks]
    assert (is_rising(found), has_fallen(found)) == (False, False)


def test_the_last_half_has_to_be_still() -> None:
    assert is_rising([1, 2, 2, 2, 9])
    assert not is_rising([1, 2, 2, 9, 2, 2, 2, 2])


def test_growth_by_a_step_that_is_kept_is_rounding() -> None:
    assert not is_more(MIB + 64, MIB)
    assert not is_rising([MIB + 64 * step for step in range(5)])


@pytest.mark.parametrize(
    ("starts", "steps"),
    [
        ([watched()], 5),
        ([watched(), watched(is_varied=True)], 40),
        ([watched(is_varied=True, steps=100)], MOST_STEPS),
        ([watched(is_rising=True)], 20),
        ([watched(is_rising=True, steps=80)], MOST_STEPS),
        ([watched(is_varied=True, step_seconds=4.0)], 40),
    ],
)
def test_more_steps_are_watched_where_the_starts_before_were_not_still(starts: list[Watched], steps: int) -> None:
    assert steps_to_watch(5, 16, starts) == steps
    assert steps_to_watch(500, 16, starts) == 500


@pytest.mark.parametrize(("size", "seconds", "steps"), [(16, 4.0, 15), (8, 1.0, 30), (16, 40.0, 5), (16, 0.1, 40)])
def test_ranks_make_as_many_steps_as_should_take_a_minute(size: int, seconds: float, steps: int) -> None:
    starts = [watched(is_varied=True, step_seconds=seconds, batch_size=size)]
    assert steps_to_watch(5, 16, starts, has_ranks=True) == steps
