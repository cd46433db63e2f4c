"""Reads what a training step allocates from a trace of the profiler, whose marks tell the phases. Needs torch.

The events are the allocator's own, exact for tensors. Memory that libraries take directly from the operating system
(oneDNN's scratch pads) is not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from torch import Tensor, nn
from torch.profiler import profile, record_function

from ..facts.memory_breakdown import ACTIVATIONS, GRADIENTS, PARAMETERS, STATE, LiveBlock
from ..facts.progress import FORWARD, OPTIMIZER_STEP
from .live_blocks import TracedEvent, TracedStep
from .module_scopes import gradients_of, state_of, weights_of
from .step import TrainingStep

_PHASE, _MODULE, _SAVED = "memorymark.phase:", "memorymark.module:", "memorymark.saved:"
_REFUSAL = "[OutOfMemory]"
_BACKWARD_NODE = "autograd::engine::evaluate_function: "


def recorded(phase: str) -> AbstractContextManager[Any]:
    return record_function(_PHASE + phase)


def recorded_module(path: str) -> AbstractContextManager[Any]:
    return record_function(_MODULE + path)


def record_saved(address: int) -> None:
    with record_function(f"{_SAVED}{address}"):
        pass


def step_begun(
    model: nn.Module, step: TrainingStep, left: Mapping[int, LiveBlock] | None = None, counted_bytes: int = 0
) -> TracedStep:
    """Return what is live before a step. `left`: the blocks of the last step; `counted_bytes`: by the device's count.

    An allocator may count more than the tensors, because of libraries and rounding.
    """
    fixed = [LiveBlock(t.nbytes, PARAMETERS, path) for path, t in weights_of(model)]
    fixed += [LiveBlock(t.nbytes, STATE, path, OPTIMIZER_STEP) for path, t in state_of(model, step.state)]
    storages = [tensor.untyped_storage() for tensor in step.carried_tensors()]
    known = {each.data_ptr(): LiveBlock(each.nbytes(), ACTIVATIONS, None, FORWARD) for each in storages}
    carried = {address: (left or {}).get(address, block) for address, block in known.items()}
    for path, tensor in gradients_of(model):
        storage = tensor.untyped_storage()
        carried[storage.data_ptr()] = LiveBlock(storage.nbytes(), GRADIENTS, path)
    known_bytes = sum(block.size_bytes for block in (*fixed, *carried.values()))
    return TracedStep((), max(known_bytes, counted_bytes), fixed, carried)


def step_ended(begun: TracedStep, model: nn.Module, step: TrainingStep, events: list[TracedEvent]) -> TracedStep:
    """Return the step with its events, and the addresses of what holds gradients, new state and outputs after it."""
    had_state = any(block.kind == STATE for block in begun.fixed)
    return replace(
        begun,
        events=events,
        gradients=_by_address(gradients_of(model)),
        state={} if had_state else _by_address(state_of(model, step.state)),
        outputs=frozenset(t.untyped_storage().data_ptr() for t in step.carried_tensors()),
    )


def _by_address(tensors: Iterable[tuple[str, Tensor]]) -> dict[int, str | None]:
    return {tensor.untyped_storage().data_ptr(): path for path, tensor in tensors}


def read_trace(
    trace: profile, device_type: str, module_of_node: Callable[[int], str | None] = lambda number: None
) -> tuple[list[TracedEvent], list[TracedEvent]]:
    """Flatten the profiler's tree: the events in their order, with module, operator and phase; and the refusals.

    The operator is the outermost in its module; the phase goes by time, as autograd may run in another thread.
    `module_of_node` tells in whose forward pass the node of a number was made.
    """
    assert trace.profiler is not None
    assert trace.profiler.kineto_results is not None
    events: list[TracedEvent] = []
    refusals: list[TracedEvent] = []
    phases: list[tuple[int, int, str]] = []
    roots = trace.profiler.kineto_results.experimental_event_tree()
    waiting: list[tuple[Any, str | None, str | None]] = [(node, None, None) for node in reversed(roots)]
    while waiting:
        node, module, operator = waiting.pop()
        tag, name, at_ns = node.tag.name, node.name, node.start_time_ns
        if tag == "Allocation":
            fields = node.extra_fields
            if fields.device.type == device_type:
                events.append(TracedEvent(at_ns, fields.ptr, fields.alloc_size, None, module, operator))
        elif name == _REFUSAL:  # this torch has no tag for this event
            refusals.append(TracedEvent(at_ns, 0, 0, None, module, operator))
        elif name.startswith(_SAVED):
            events.append(TracedEvent(at_ns, int(name.removeprefix(_SAVED)), 0))
        elif name.startswith(_PHASE):
            phases.append((at_ns, node.end_time_ns, name.removeprefix(_PHASE)))
        elif name.startswith(_MODULE):
            module, operator = name.removeprefix(_MODULE), None
        elif name.startswith(_BACKWARD_NODE):
            module, operator = module_of_node(node.extra_fields.sequence_number), name.removeprefix(_BACKWARD_NODE)
        elif operator is None and "::" in name:
            operator = name.removeprefix("aten::")
        waiting.extend((child, module, operator) for child in reversed(node.children))  # equal times stay in order
    ordered = sorted(events, key=lambda event: event.at_ns)
    return [_in_phase(event, phases) for event in ordered], [_in_phase(event, phases) for event in refusals]


def _in_phase(event: TracedEvent, phases: list[tuple[int, int, str]]) -> TracedEvent:
    phase = next((name for start, end, name in phases if start <= event.at_ns <= end), None)
    return event._replace(phase=phase)
