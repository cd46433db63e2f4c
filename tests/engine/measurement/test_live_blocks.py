"""Replaying events of the allocator gives the peak, its phase, and what each live block was for."""

from hypothesis import given
from hypothesis import strategies as st

from engine.facts.memory_breakdown import (
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
from engine.facts.result import MemoryByKind
from engine.measurement.live_blocks import TracedEvent, TracedStep, after, explain

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
def test_the_total_is_the_most_that_is_live_at_once(pairs, carried_bytes):
    traced = [TracedEvent(at, address, size) for at, (address, size) in enumerate(pairs)]
    live = {3: carried_bytes}
    now = peak = 30 + carried_bytes
    for address, size in pairs:
        now += size if size > 0 else -live.pop(address, 0) if size < 0 else 0
        live |= {address: size} if size > 0 else {}
        peak = max(peak, now)
    carried = {3: LiveBlock(carried_bytes, ACTIVATIONS)}
    assert explain(TracedStep(traced, 30 + carried_bytes, [WEIGHTS], carried), None).total_bytes == peak


ONE_STEP = [
    TracedEvent(5, 1, 4),  # the batch
    TracedEvent(11, 2, 100, "forward"),  # an activation
    TracedEvent(21, 3, 30, "backward"),  # a gradient
    TracedEvent(22, 4, 7, "backward"),  # a temporary of the backward pass
    TracedEvent(23, 2, -100, "backward"),
    TracedEvent(24, 4, -7, "backward"),
    TracedEvent(31, 5, 60, "optimizer_step"),  # the optimizer's state, made in the first step
]


def step_peak(events, *, had_state_bytes=0, carried_bytes=0, **addresses):
    fixed = [WEIGHTS, LiveBlock(had_state_bytes, STATE)]
    carried = {7: LiveBlock(carried_bytes, ACTIVATIONS, None, "forward")}
    return explain(TracedStep(events, 30 + had_state_bytes + carried_bytes, fixed, carried, **addresses), None)


def test_the_peak_is_where_most_bytes_were_live_at_once():
    peak = step_peak(ONE_STEP, gradients={3: "mlp"}, state={5: "mlp"})
    assert (peak.total_bytes, peak.request.phase) == (30 + 4 + 100 + 30 + 7, "backward")
    assert peak.by_kind == MemoryByKind(30, 30, 0, 100, 4 + 7)


def test_without_activations_the_optimizer_step_holds_the_peak():
    peak = step_peak([e for e in ONE_STEP if e.address != 2], gradients={3: "mlp"}, state={5: "mlp"})
    assert (peak.total_bytes, peak.request.phase) == (30 + 4 + 30 + 60, "optimizer_step")
    assert peak.by_kind.optimizer_state_bytes == 60


def test_the_kinds_add_up_to_the_peak():
    peak = step_peak(ONE_STEP, had_state_bytes=60, gradients={3: "mlp"})
    kinds = peak.by_kind
    total = kinds.parameters_bytes + kinds.gradients_bytes + kinds.optimizer_state_bytes
    assert total + kinds.activations_bytes + kinds.other_bytes == peak.total_bytes


def test_an_address_used_before_its_gradient_is_not_counted_as_gradient():
    events = [
        TracedEvent(11, 3, 50, "forward"),
        TracedEvent(12, 3, -50, "forward"),
        TracedEvent(21, 3, 30, "backward"),
    ]
    assert step_peak(events, gradients={3: "mlp"}).by_kind == MemoryByKind(30, 0, 0, 50, 0)


def test_freeing_a_block_made_before_the_trace_changes_nothing():
    assert step_peak([TracedEvent(11, 99, -500), TracedEvent(12, 2, 1)]).total_bytes == 31


def test_what_the_step_before_left_is_live_until_it_is_freed():
    freed_at_once = step_peak([TracedEvent(1, 7, -1000), *ONE_STEP], carried_bytes=1000)
    freed_in_forward = step_peak([*ONE_STEP[:2], TracedEvent(12, 7, -1000), *ONE_STEP[2:]], carried_bytes=1000)
    assert freed_at_once.total_bytes == 30 + 1000
    assert (freed_in_forward.total_bytes, freed_in_forward.request.phase) == (30 + 1000 + 4 + 100, "forward")
    assert freed_in_forward.by_kind == MemoryByKind(30, 0, 0, 1000 + 100, 4)


def test_a_step_without_events_peaks_at_what_was_there():
    assert step_peak([]).total_bytes == 30
