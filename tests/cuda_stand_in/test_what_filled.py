"""What filled a made-up card: the allocator's own refusal, counted to the byte, with fragmentation apart."""

import pytest

from engine.results.memory_breakdown import ACTIVATIONS, PARAMETERS, MemoryBreakdown, by_kind
from engine.text.units import GIB, MIB
from tests.cuda_stand_in.cards import WarmEngine

CARD = {"memory": 4 * GIB}
LIMIT_BYTES = 112 * MIB
SHORT = {"sequence_length": 64, "memory_limit_bytes": LIMIT_BYTES}


@pytest.fixture(scope="module")
def refused(warm: WarmEngine) -> MemoryBreakdown:
    return warm.explain(CARD, 64, **SHORT)


def test_the_entries_are_what_the_allocator_had_allocated_when_it_refused(refused: MemoryBreakdown) -> None:
    assert refused.moment == "refusal"
    assert sum(entry.size_bytes for entry in refused.entries) == refused.total_bytes
    assert refused.cached_bytes is not None
    reserved_bytes = refused.total_bytes + refused.cached_bytes
    assert reserved_bytes % (2 * MIB) == 0
    assert reserved_bytes <= LIMIT_BYTES < reserved_bytes + (refused.request.size_bytes or 0) + 20 * MIB


def test_the_refused_request_is_named_by_module_and_phase(refused: MemoryBreakdown) -> None:
    assert refused.request.phase in ("forward", "backward")
    assert (refused.request.module or "").startswith(("bert.", "classifier"))
    assert refused.request.size_bytes


def test_activations_are_those_that_autograd_saved_before_the_refusal(refused: MemoryBreakdown) -> None:
    kinds = by_kind(refused)
    assert kinds[ACTIVATIONS] > kinds[PARAMETERS] >= 4 * 4_386_178
    assert "unattributed" not in kinds
    assert sum(e.size_bytes for e in refused.entries if e.phase == "forward") >= kinds[ACTIVATIONS]


def test_the_backward_pass_in_its_own_thread_is_attributed_too(warm: WarmEngine) -> None:
    found = warm.explain(CARD, 64, sequence_length=64)
    assert found.moment == "peak"
    assert found.request.phase == "backward"
    temporaries = [entry for entry in found.entries if (entry.kind, entry.phase) == ("temporaries", "backward")]
    of_layers = sum(entry.size_bytes for entry in temporaries if (entry.module or "").startswith("bert."))
    assert of_layers >= 0.99 * sum(entry.size_bytes for entry in temporaries) > 0


def test_fragmentation_of_a_peak_is_not_known(warm: WarmEngine) -> None:
    assert warm.explain(CARD, 2, sequence_length=16).cached_bytes is None
