"""Replaying one step's events tells what each live block is for, and counts as the memory budget does."""

from hypothesis import given
from hypothesis import strategies as st

from engine.measurement.live_blocks import TracedEvent, TracedStep, after, explain
from engine.measurement.memory_timeline import Event, Phase
from engine.measurement.memory_timeline import replay as count
from engine.results.memory_breakdown import (
    ACTIVATIONS,
    BATCH,
    GRADIENTS,
    INPUTS,
    LOSS,
    OPTIMIZER,
    PARAMETERS,
    STATE,
    TEMPORARIES,
    WORKSPACES,
    LiveBlock,
    Request,
)

WEIGHTS = LiveBlock(30, PARAMETERS, "mlp")
STEP = [
    TracedEvent(5, 1, 4),
    TracedEvent(11, 2, 100, "forward", "mlp", "linear"),
    TracedEvent(12, 2, 0),  # saved for the backward pass
    TracedEvent(13, 3, 20, "forward", "mlp", "gelu"),
    TracedEvent(14, 6, 9, "forward"),
    TracedEvent(15, 3, -20, "forward"),
    TracedEvent(21, 4, 30, "backward", "mlp", "MmBackward0"),
    TracedEvent(22, 5, 7, "backward", "mlp", "MmBackward0"),
    TracedEvent(23, 2, -100, "backward"),
    TracedEvent(24, 5, -7, "backward"),
    TracedEvent(31, 7, 60, "optimizer_step"),
    TracedEvent(32, 8, 3, "optimizer_step"),
]
TRACED = TracedStep(STEP, 30, [WEIGHTS], gradients={4: "mlp"}, state={7: "mlp"}, outputs=frozenset({6}))


def live_at(limit_bytes, step=TRACED):
    found = explain(step, limit_bytes)
    assert sum(block.size_bytes for block in found.blocks) == found.total_bytes
    return found, {(block.kind, block.module) for block in found.blocks}


def test_without_a_limit_the_peak_is_explained():
    found, live = live_at(None)
    assert (found.moment, found.total_bytes) == ("peak", 30 + 4 + 100 + 9 + 30 + 7)
    assert found.request == Request(7, "mlp", "backward", "MmBackward0", TEMPORARIES)
    assert live == {
        (PARAMETERS, "mlp"),
        (INPUTS, BATCH),
        (ACTIVATIONS, "mlp"),
        (ACTIVATIONS, LOSS),
        (GRADIENTS, "mlp"),
        (TEMPORARIES, "mlp"),
    }


def test_a_limit_refuses_the_first_request_above_it():
    found, live = live_at(30 + 4 + 100)
    assert (found.moment, found.total_bytes) == ("refusal", 30 + 4 + 100)
    assert found.request == Request(20, "mlp", "forward", "gelu", TEMPORARIES)
    assert live == {(PARAMETERS, "mlp"), (INPUTS, BATCH), (ACTIVATIONS, "mlp")}


def test_a_block_is_temporary_until_it_is_saved():
    found = explain(TRACED, 30 + 4 + 100 + 9)
    assert [block.kind for block in found.blocks if block.operator == "linear"] == [ACTIVATIONS]
    not_saved = TracedStep([event for event in STEP if event.size_bytes], 30, [WEIGHTS])
    found = explain(not_saved, 30 + 4 + 100 + 9)
    assert [block.kind for block in found.blocks if block.operator == "linear"] == [TEMPORARIES]


def test_the_optimizer_s_state_belongs_to_the_modules_and_its_temporaries_to_itself():
    _, live = live_at(
        None,
        TracedStep(
            [*STEP[:10], TracedEvent(30, 9, 500, "optimizer_step"), *STEP[10:]], 30, [WEIGHTS], state={7: "mlp"}
        ),
    )
    assert {(STATE, "mlp"), (TEMPORARIES, OPTIMIZER)} <= live


def test_weights_above_the_limit_are_refused_before_anything_is_requested():
    found, live = live_at(29)
    assert (found.moment, found.total_bytes, found.request.size_bytes) == ("refusal", 30, 0)
    assert live == {(PARAMETERS, "mlp")}


def test_what_the_device_counts_beyond_the_known_blocks_is_the_libraries():
    found, live = live_at(None, TracedStep(STEP, 42, [WEIGHTS]))
    assert (WORKSPACES, None) in live
    assert [block.size_bytes for block in found.blocks if block.kind == WORKSPACES] == [12]


def test_a_device_s_own_refusal_ends_the_step():
    request = Request(999, "mlp", "forward", "gelu")
    found, live = live_at(None, TracedStep(STEP, 30, [WEIGHTS], refused=request, refused_at=3))
    assert (found.moment, found.total_bytes, found.request) == ("refusal", 30 + 4 + 100, request)
    assert live == {(PARAMETERS, "mlp"), (INPUTS, BATCH), (ACTIVATIONS, "mlp")}


def test_what_a_step_leaves_is_known_to_the_next():
    left = after(TRACED)
    assert {address: block.kind for address, block in left.items()} == {
        1: INPUTS,
        4: GRADIENTS,
        6: ACTIVATIONS,
        7: STATE,
        8: TEMPORARIES,
    }


events = st.lists(st.tuples(st.integers(1, 6), st.integers(-50, 50)), max_size=60)


@given(events, st.integers(0, 60))
def test_the_total_is_the_one_that_the_budget_counts(pairs, carried_bytes):
    traced = [TracedEvent(at, address, size) for at, (address, size) in enumerate(pairs)]
    counted = [Event(event.at_ns, event.address, event.size_bytes) for event in traced if event.size_bytes]
    carried = {3: LiveBlock(carried_bytes, ACTIVATIONS)}
    found = explain(TracedStep(traced, 30 + carried_bytes, [WEIGHTS], carried), None)
    phases, left = [Phase("forward", 0, 99)], {3: carried_bytes}
    peak = count(counted, phases, parameters_bytes=30, optimizer_state_bytes=0, carried_bytes=left)
    assert found.total_bytes == peak.allocated_bytes
