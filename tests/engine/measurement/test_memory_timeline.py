"""Replaying allocation events gives the peak, its phase, and what held the memory."""

from engine.measurement.memory_timeline import Event, Phase, replay
from engine.results.result import MemoryByKind

PHASES = [Phase("forward", 10, 19), Phase("backward", 20, 29), Phase("optimizer_step", 30, 39)]
STEP = [
    Event(5, 1, 4),  # the batch
    Event(11, 2, 100),  # an activation
    Event(21, 3, 30),  # a gradient
    Event(22, 4, 7),  # a temporary of the backward pass
    Event(23, 2, -100),
    Event(24, 4, -7),
    Event(31, 5, 60),  # the optimizer's state, made in the first step
]


def step_peak(events, **kinds):
    return replay(events, PHASES, **{"parameters_bytes": 30, "optimizer_state_bytes": 0} | kinds)


def test_the_peak_is_where_most_bytes_were_live_at_once():
    peak = step_peak(STEP, gradient_addresses=frozenset({3}), state_addresses=frozenset({5}))
    assert (peak.allocated_bytes, peak.phase) == (30 + 4 + 100 + 30 + 7, "backward")
    assert peak.by_kind == MemoryByKind(30, 30, 0, 100, 4 + 7)


def test_without_activations_the_optimizer_step_holds_the_peak():
    events = [e for e in STEP if e.address != 2]
    peak = step_peak(events, gradient_addresses=frozenset({3}), state_addresses=frozenset({5}))
    assert (peak.allocated_bytes, peak.phase) == (30 + 4 + 30 + 60, "optimizer_step")
    assert peak.by_kind.optimizer_state_bytes == 60


def test_the_kinds_add_up_to_the_peak():
    peak = step_peak(STEP, optimizer_state_bytes=60, gradient_addresses=frozenset({3}))
    kinds = peak.by_kind
    total = kinds.parameters_bytes + kinds.gradients_bytes + kinds.optimizer_state_bytes
    assert total + kinds.activations_bytes + kinds.other_bytes == peak.allocated_bytes


def test_an_address_used_before_its_gradient_is_not_counted_as_gradient():
    events = [Event(11, 3, 50), Event(12, 3, -50), Event(21, 3, 30)]
    peak = step_peak(events, gradient_addresses=frozenset({3}))
    assert peak.by_kind == MemoryByKind(30, 0, 0, 50, 0)


def test_freeing_a_block_made_before_the_trace_changes_nothing():
    assert step_peak([Event(11, 99, -500), Event(12, 2, 1)]).allocated_bytes == 31


def test_what_the_step_before_left_is_live_until_it_is_freed():
    freed_at_once = step_peak([Event(1, 7, -1000), *STEP], carried_bytes={7: 1000})
    freed_in_forward = step_peak([*STEP, Event(12, 7, -1000)], carried_bytes={7: 1000})
    assert freed_at_once.allocated_bytes == 30 + 1000
    assert (freed_in_forward.allocated_bytes, freed_in_forward.phase) == (30 + 1000 + 4 + 100, "forward")
    assert freed_in_forward.by_kind == MemoryByKind(30, 0, 0, 1000 + 100, 4)


def test_events_are_replayed_in_the_order_of_their_times():
    assert step_peak(list(reversed(STEP))).allocated_bytes == step_peak(STEP).allocated_bytes


def test_a_step_without_events_peaks_at_what_was_there():
    assert step_peak([]).allocated_bytes == 30
