"""Micro-batch x accumulation pairs: exact, never rounded, and honest about memory that was not measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.advice.global_batch import MeasuredMemory, plan_global_batch
from engine.errors import SpecError
from engine.facts.result import Point
from engine.text.units import GIB

NOTHING_MEASURED = MeasuredMemory({}, 24 * GIB, 1 * GIB)


def point(batch_size, memory_gib, speed=None):
    return Point(batch_size, speed, None, None, None, memory_gib * GIB, speed and speed * 0.9, speed and speed * 1.1)


def memory(*points, gradients_gib=1):
    return MeasuredMemory({each.batch_size: each for each in points}, 24 * GIB, gradients_gib * GIB)


@given(size=st.integers(1, 5_000), devices=st.integers(1, 8), recommended=st.integers(1, 300))
def test_every_pair_makes_exactly_the_global_batch(size, devices, recommended):
    plan = plan_global_batch(size, devices, recommended, NOTHING_MEASURED)
    assert all(pair.micro_batch_size * pair.accumulation_steps * devices == size for pair in plan.pairs)
    assert all(pair.micro_batch_size <= recommended for pair in plan.pairs)
    assert plan.size == size


@given(size=st.integers(1, 5_000), devices=st.integers(1, 8), recommended=st.integers(1, 300))
def test_each_named_neighbour_has_a_sensible_pair_and_none_is_nearer(size, devices, recommended):
    plan = plan_global_batch(size, devices, recommended, NOTHING_MEASURED)
    for near in plan.nearest:
        between = range(min(near, size) + 1, max(near, size))
        assert plan_global_batch(near, devices, recommended, NOTHING_MEASURED).is_sensible
        assert not any(plan_global_batch(each, devices, recommended, NOTHING_MEASURED).is_sensible for each in between)


def test_pairs_are_the_divisors_up_to_the_recommended_size_with_the_largest_first():
    plan = plan_global_batch(96, 1, 40, NOTHING_MEASURED)
    assert [(pair.micro_batch_size, pair.accumulation_steps) for pair in plan.pairs][:4] == [
        (32, 3),
        (24, 4),
        (16, 6),
        (12, 8),
    ]


def test_prime_global_batch_has_no_sensible_pair_and_the_nearest_are_named():
    plan = plan_global_batch(1021, 1, 40, NOTHING_MEASURED)
    assert not plan.is_sensible
    assert plan.chosen is None
    assert plan.nearest == (1020, 1023)  # 34 x 30 and 33 x 31; of 1022 no divisor lies from 20 to 40


def test_prime_global_batch_that_fits_at_once_is_sensible():
    assert plan_global_batch(37, 1, 40, NOTHING_MEASURED).chosen.accumulation_steps == 1


def test_global_batch_that_devices_do_not_divide_has_no_pair_at_all():
    plan = plan_global_batch(100, 3, 40, NOTHING_MEASURED)
    assert plan.pairs == ()
    assert plan.nearest == (99, 102)  # 33 x 3 and 34 x 3


def test_speed_is_that_of_the_micro_batch_and_missing_where_it_was_not_measured():
    plan = plan_global_batch(64, 1, 32, memory(point(32, 4, speed=100.0)))
    assert [pair.samples_per_second for pair in plan.pairs][:2] == [100.0, None]
    assert (plan.pairs[0].samples_per_second_low, plan.pairs[0].samples_per_second_high) == (90.0, pytest.approx(110.0))


def test_accumulation_fits_where_the_gradients_fit_on_top_of_what_was_measured():
    plan = plan_global_batch(64, 1, 32, memory(point(32, 22), gradients_gib=1))
    assert plan.pairs[0].fits is True


def test_accumulation_is_unknown_where_all_gradients_exceed_the_limit_and_a_smaller_micro_batch_is_chosen():
    plan = plan_global_batch(64, 1, 32, memory(point(32, 22), point(16, 12), gradients_gib=6))
    assert [pair.fits for pair in plan.pairs][:2] == [None, True]
    assert plan.chosen.micro_batch_size == 16


def test_memory_between_two_measured_sizes_is_taken_from_the_line_between_them():
    known = memory(point(8, 6), point(32, 22))
    assert [known.of(size) for size in (8, 16, 32, 33)] == [6 * GIB, pytest.approx(34 / 3 * GIB), 22 * GIB, None]


def test_accumulation_is_unknown_where_the_size_of_the_gradients_is():
    plan = plan_global_batch(64, 1, 32, MeasuredMemory({32: point(32, 4)}, 24 * GIB, None))
    assert plan.pairs[0].fits is None
    assert plan_global_batch(32, 1, 32, MeasuredMemory({}, 24 * GIB, None)).pairs[0].fits is True  # nothing accumulates


@pytest.mark.parametrize(("size", "devices", "field"), [(0, 1, "global_batch_size"), (8, 0, "devices")])
def test_number_out_of_range_is_refused_with_its_name(size, devices, field):
    with pytest.raises(SpecError, match=f"{field}: .* out of range; from 1 to"):
        plan_global_batch(size, devices, 8, NOTHING_MEASURED)
