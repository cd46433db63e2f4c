"""What would fill the memory of a size that does not fit."""

import pytest

from engine.estimate.allocator import Allocator
from engine.estimate.batch_model import (
    ACTIVATIONS,
    GRADIENTS,
    PARAMETERS,
    STATE,
    TEMPORARIES,
    MemoryBlock,
    Recording,
    Skeleton,
)
from engine.estimate.explain import what_fills
from engine.estimate.predict import Replays, card_of, estimate
from engine.estimate.replay import CardConstants, PlainMemory
from engine.results.memory_breakdown import by_kind
from engine.spec import RunSpec
from engine.text.units import MIB
from tests.engine.estimate.synthetic_models import PARAMETER_BYTES, SAMPLE_BYTES, card, model

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
