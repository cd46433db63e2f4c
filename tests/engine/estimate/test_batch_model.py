"""A line through two recordings, believed only if a third agrees; and what would fill the memory above it."""

import json

import pytest

from engine.errors import EstimateImpossible
from engine.estimate.allocator import Allocator
from engine.estimate.batch_model import (
    ACTIVATIONS,
    GRADIENTS,
    PARAMETERS,
    STATE,
    TEMPORARIES,
    BatchModel,
    MemoryBlock,
    Recording,
    RetracedModel,
    Skeleton,
    affine_model,
    model_of,
)
from engine.estimate.explain import what_fills
from engine.estimate.predict import estimate
from engine.estimate.replay import CardConstants, PlainMemory, Replays, card_of
from engine.facts.memory_breakdown import by_kind
from engine.settings.spec import RunSpec
from engine.text.units import MIB
from tests.engine.estimate.synthetic_models import PARAMETER_BYTES, SAMPLE_BYTES, card, model

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


BLOCKS = (
    MemoryBlock(PARAMETERS, None, "load", "mlp"),
    MemoryBlock(TEMPORARIES, None, "randint"),
    MemoryBlock(ACTIVATIONS, "forward", "addmm", "mlp"),
    MemoryBlock(ACTIVATIONS, "forward", "gelu", "mlp"),
    MemoryBlock(GRADIENTS, "backward", "mm", "mlp"),
    MemoryBlock(TEMPORARIES, "backward", "mm", "mlp"),
    MemoryBlock(STATE, "optimizer_step", "zeros_like", "mlp"),
)
EVENTS = (0, 1, 2, 3, ~3, 4, 5, ~2, ~5, 6)
SIZES = (30, 4, 100, 20, 30, 7, 60)
RECORDING = Recording(8, Skeleton(BLOCKS, EVENTS, (1,)), SIZES)


def filled(limit_bytes):
    found = what_fills(RECORDING, PlainMemory(), CardConstants(), limit_bytes)
    assert sum(entry.size_bytes for entry in found.entries) == found.total_bytes
    return found


def test_the_first_request_above_the_limit_is_refused():
    found = filled(30 + 4 + 100)
    assert (found.moment, found.total_bytes, found.step) == ("refusal", 134, 1)
    assert (found.request.size_bytes, found.request.module, found.request.operator) == (20, "mlp", "gelu")
    assert by_kind(found) == {"parameters": 30, "activations": 100, "inputs": 4}


def test_what_the_backward_pass_does_not_find_any_more_was_temporary():
    found = what_fills(
        Recording(8, Skeleton(BLOCKS, (0, 1, 2, 3, 4, ~3, ~2), (1,)), SIZES), PlainMemory(), CardConstants(), 150
    )
    assert by_kind(found) == {"parameters": 30, "activations": 100, "inputs": 4}  # refused at block 3
    kept = what_fills(
        Recording(8, Skeleton(BLOCKS, (0, 2, 3, ~3, 1, 4, ~2), (1,)), SIZES), PlainMemory(), CardConstants(), 140
    )
    assert by_kind(kept) == {"parameters": 30, "activations": 100}


def test_without_a_refusal_the_peak_is_explained_with_its_last_request():
    found = filled(10_000)
    assert (found.moment, found.total_bytes) == ("peak", 30 + 4 + 30 + 60 + 47)
    assert found.request.phase == "backward"
    assert by_kind(found) == {"parameters": 30, "gradients": 30, "activations": 100, "temporaries": 7, "inputs": 4}


def test_weights_too_large_are_refused_while_they_are_loaded():
    found = filled(29)
    assert (found.moment, found.total_bytes, found.step, found.entries) == ("refusal", 0, 0, ())


@pytest.mark.parametrize("limit_mib", [300, 1000, 3000])
def test_on_a_card_the_entries_are_what_the_allocator_allocated(limit_mib):
    limit = limit_mib * MIB
    size = estimate(
        RunSpec("bert-tiny", memory_limit_bytes=limit), card(), model(), seconds=0.0, versions={}
    ).largest_batch_size
    memory = Allocator(limit_bytes=limit)
    found = what_fills(model().at(size + 1), memory, card_of(card()), limit)
    assert found.moment == "refusal"
    assert sum(entry.size_bytes for entry in found.entries) == found.total_bytes == memory.allocated_bytes
    assert found.cached_bytes == memory.reserved_bytes - memory.allocated_bytes
    assert found.total_bytes + found.request.size_bytes + found.cached_bytes > limit - 20 * MIB


def test_an_estimate_explains_the_size_above_the_largest_only_where_requested():
    limited = RunSpec("bert-tiny", memory_limit_bytes=PARAMETER_BYTES * 2 + 10 * SAMPLE_BYTES)
    made = estimate(limited, None, model(), seconds=0.0, versions={}, explains=True)
    assert made.breakdown.batch_size == made.largest_batch_size + 1
    assert made.breakdown.moment == "refusal"
    assert made.to_dict()["breakdown"]["method"] == "estimated"
    assert estimate(limited, None, model(), seconds=0.0, versions={}).breakdown is None


def test_an_estimate_that_memory_does_not_end_explains_the_peak_of_the_largest():
    spec = RunSpec("bert-tiny", max_batch_size=4)
    made = estimate(spec, None, model(), seconds=0.0, versions={}, explains=True, replays=Replays(model()))
    assert (made.limits, made.breakdown.batch_size, made.breakdown.moment) == ("max_batch_size", 4, "peak")
