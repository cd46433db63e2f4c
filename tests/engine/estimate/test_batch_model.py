"""A line through two recordings, believed only if a third agrees."""

import json

import pytest

from engine.errors import EstimateImpossible
from engine.estimate.batch_model import (
    ACTIVATIONS,
    PARAMETERS,
    BatchModel,
    MemoryBlock,
    Recording,
    RetracedModel,
    Skeleton,
    affine_model,
    model_of,
)

SKELETON = Skeleton(
    blocks=(MemoryBlock(PARAMETERS, None, "load"), MemoryBlock(ACTIVATIONS, "forward", "mm")),
    events=(0, 1, ~1),
    step_starts=(1,),
)


def recorded(batch_size, size_bytes, skeleton=SKELETON):
    return Recording(batch_size, skeleton, (4096, size_bytes))


def in_steps(batch_size, steps, last_operator="mm"):
    """A model, then steps that each make one block and free that of the step before."""
    operators = ["mm"] * (steps - 1) + [last_operator]
    blocks = (SKELETON.blocks[0], *(MemoryBlock(ACTIVATIONS, "forward", operator) for operator in operators))
    events = [0, 1, *(event for step in range(2, steps + 1) for event in (~(step - 1), step))]
    starts = (1, *range(2, len(events), 2))
    return Recording(batch_size, Skeleton(blocks, tuple(events), starts), (4096, *[24 * batch_size] * steps))


def straight(batch_size, **_):
    return recorded(batch_size, 100 + 24 * batch_size)


def bent(batch_size, **_):
    return recorded(batch_size, 24 * batch_size**2)


def with_another_operator(batch_size, **_):
    blocks = (SKELETON.blocks[0], MemoryBlock(ACTIVATIONS, "forward", f"kernel_of_{batch_size}"))
    return recorded(batch_size, 24, Skeleton(blocks, SKELETON.events, SKELETON.step_starts))


def test_a_size_that_was_never_traced_comes_from_the_line():
    model = model_of(straight, (3, 5, 8), "fake_cuda")
    assert isinstance(model, BatchModel)
    assert list(model.at(1000).sizes_bytes) == [4096, 100 + 24 * 1000]
    assert model.at(1000).peak_live_bytes() == 4096 + 100 + 24 * 1000


@pytest.mark.parametrize(("last_operator", "steps_traced"), [("mm", [4, 3, 3]), ("another", [4, 4, 4])])
def test_a_last_step_that_repeats_the_one_before_is_traced_once(last_operator, steps_traced):
    traced = []

    def trace(batch_size, *, without_last_step=False):
        traced.append(4 - without_last_step)
        return in_steps(batch_size, traced[-1], "mm" if without_last_step else last_operator)

    model = model_of(trace, (3, 5, 8), "fake_cuda")
    assert traced == steps_traced
    assert isinstance(model, BatchModel)
    assert model.at(1000).sizes_bytes == list(in_steps(1000, 4).sizes_bytes)
    assert model.skeleton == in_steps(1000, 4, last_operator).skeleton


def test_steps_are_not_completed_after_others_than_they_are():
    assert in_steps(3, 3, "another").completed_like(in_steps(8, 4)) is None


@pytest.mark.parametrize("trace", [bent, with_another_operator])
def test_what_is_no_straight_line_is_traced_at_each_size_asked_for(trace):
    model = model_of(trace, (3, 5, 8), "fake_cuda")
    assert isinstance(model, RetracedModel)
    assert model.at(20) == trace(20)


def test_each_size_is_traced_once():
    traced = []
    model = RetracedModel(lambda size: traced.append(size) or bent(size), [bent(3)], "fake_cuda")
    assert [model.at(size).batch_size for size in (3, 7, 7)] == [3, 7, 7]
    assert traced == [7]


def test_half_a_byte_for_a_sample_is_no_line():
    assert affine_model(recorded(3, 10), recorded(5, 11), "fake_cuda") is None


def test_a_model_comes_back_from_json_as_it_went():
    model = model_of(straight, (3, 5, 8), "fake_cuda")
    copied = BatchModel.from_dict(json.loads(json.dumps(model.to_dict())))
    assert copied == model


def test_a_trace_that_is_impossible_stays_impossible():
    def refuse(_, **__):
        raise EstimateImpossible("measure it instead")

    with pytest.raises(EstimateImpossible, match="measure it"):
        model_of(refuse, (3, 5, 8), "fake_cuda")
