"""Runs a batch size once more and reports what filled the memory when it was refused. Needs torch.

It runs in a separate process: hooks and names in the profiler's trace cost time, so no figure of a probe comes from
here. The events are those that the probe on a CPU counts, and the bytes are the same.

Check by hand: `python -m engine bert-tiny --device cpu --memory-limit 200MiB`; the lines after the certificate.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.profiler import ProfilerActivity, profile, record_function

from ..progress import FORWARD, OPTIMIZER_STEP, Progress, no_progress
from ..results.memory_breakdown import (
    ACTIVATIONS,
    GRADIENTS,
    PARAMETERS,
    STATE,
    LiveBlock,
    MemoryBreakdown,
    Request,
    entries_of,
)
from ..results.result import Outcome
from .device import Device
from .live_blocks import LiveMoment, TracedEvent, TracedStep, after, explain, place_of
from .module_scopes import ModuleScopes, gradients_of, state_of, weights_of
from .probe import Bench, outcome_of
from .step import TrainingStep

_PHASE, _MODULE, _SAVED = "memorymark.phase:", "memorymark.module:", "memorymark.saved:"
_REFUSAL = "[OutOfMemory]"
_BACKWARD_NODE = "autograd::engine::evaluate_function: "


def attribute(bench: Bench, batch_size: int, *, steps: int, progress: Progress = no_progress) -> MemoryBreakdown | None:
    """Train `batch_size` until it is refused, and return what was live then, or else at the peak.

    None without events of the device, or with a compiled model. Raises all errors of a step but an out-of-memory.
    """
    if bench.spec.torch_compile:
        return None
    started = time.perf_counter()
    bench.device.start_from_clean()
    run = _AttributedRun(bench, TrainingStep(bench.spec, bench.built, bench.device.torch_device))
    best: tuple[int, LiveMoment] | None = None
    for number in range(1, steps + 1):
        progress("attribution", number)
        found, is_over = run.step_once(batch_size)
        if found is None:
            return None
        if best is None or found.moment == "refusal" or found.total_bytes > best[1].total_bytes:
            best = number, found
        if is_over or found.moment == "refusal":
            break
    assert best is not None
    return _breakdown(best[1], best[0], run, batch_size).taking(time.perf_counter() - started)


def _breakdown(found: LiveMoment, number: int, run: _AttributedRun, batch_size: int) -> MemoryBreakdown:
    is_refusal = found.moment == "refusal"
    return MemoryBreakdown(
        batch_size=batch_size,
        moment=found.moment,
        method="measured",
        total_bytes=found.total_bytes,
        limit_bytes=run.bench.device.limit_bytes or None,
        request=found.request,
        entries=entries_of(found.blocks, found.total_bytes),
        cached_bytes=run.refusals.cached_bytes if is_refusal else None,
        step=number,
    )


class _Refusals:
    """What the CUDA allocator reports at a refusal: the last one counts, because libraries catch earlier ones."""

    def __init__(self, device: Device) -> None:
        self.requested_bytes: int | None = None
        self.cached_bytes: int | None = None
        self._device = device.torch_device
        if self._device.type == "cuda":
            torch._C._cuda_attach_out_of_memory_observer(self._note)  # type: ignore[attr-defined]

    def _note(self, device: int, requested_bytes: int, *_: int) -> None:
        stats = torch.cuda.memory_stats(device)
        self.requested_bytes = requested_bytes
        self.cached_bytes = stats["reserved_bytes.all.current"] - stats["allocated_bytes.all.current"]


@dataclass
class _AttributedRun:
    """The steps of one batch size, with the blocks that each step leaves to the next."""

    bench: Bench
    step: TrainingStep
    left: Mapping[int, LiveBlock] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.refusals = _Refusals(self.bench.device)
        self.scopes = ModuleScopes(self.bench.built.model, lambda path: record_function(_MODULE + path))

    def step_once(self, batch_size: int) -> tuple[LiveMoment | None, bool]:
        """Run one step. Return what was live at its moment (None without events), and whether it must be the last."""
        step, device = self.step, self.bench.device
        step.begin()
        self.scopes.begin_step()
        begun = self._at_beginning()
        refused = None
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as trace:
            try:
                with self.scopes.followed(), saved_tensors_hooks(_saved, lambda tensor: tensor):
                    step(batch_size, lambda name: record_function(_PHASE + name))
            except Exception as exc:
                if outcome_of(exc, device) is not Outcome.OUT_OF_MEMORY:
                    raise
                refused = exc
        events, refusals = _read(trace, device.torch_device.type, self.scopes)
        if not events:
            return None, True
        traced = self._with_ending(begun, events)
        if refused is not None and refusals:
            last = refusals[-1]
            request = Request(self.refusals.requested_bytes, place_of(last), last.phase, last.operator)
            traced = replace(traced, refused=request, refused_at=sum(event.at_ns <= last.at_ns for event in events))
        found = explain(traced, None if device.has_caching_allocator else device.limit_bytes)
        self.left = after(traced)
        return found, refused is not None

    def _at_beginning(self) -> TracedStep:
        model = self.bench.built.model
        fixed = [LiveBlock(t.nbytes, PARAMETERS, path) for path, t in weights_of(model)]
        fixed += [LiveBlock(t.nbytes, STATE, path, OPTIMIZER_STEP) for path, t in state_of(model, self.step.state)]
        storages = (tensor.untyped_storage() for tensor in self.step.carried_tensors())
        carried = {
            storage.data_ptr(): self.left.get(storage.data_ptr())
            or LiveBlock(storage.nbytes(), ACTIVATIONS, None, FORWARD)
            for storage in storages
        }
        carried |= {
            tensor.untyped_storage().data_ptr(): LiveBlock(tensor.nbytes, GRADIENTS, path)
            for path, tensor in gradients_of(model)
        }
        known = sum(block.size_bytes for block in (*fixed, *carried.values()))
        device = self.bench.device
        module = getattr(device, "module", None)  # an accelerator, whose allocator counts libraries and rounding too
        counted = 0 if module is None else int(module.memory_allocated(device.torch_device))
        return TracedStep((), max(known, counted), fixed, carried)

    def _with_ending(self, begun: TracedStep, events: list[TracedEvent]) -> TracedStep:
        had_state = any(block.kind == STATE for block in begun.fixed)
        state = [] if had_state else state_of(self.bench.built.model, self.step.state)
        return replace(
            begun,
            events=events,
            gradients=_by_address(gradients_of(self.bench.built.model)),
            state=_by_address(state),
            outputs=frozenset(t.untyped_storage().data_ptr() for t in self.step.carried_tensors()),
        )


def _by_address(tensors: Iterable[tuple[str, Tensor]]) -> dict[int, str | None]:
    return {tensor.untyped_storage().data_ptr(): path for path, tensor in tensors}


def _saved(tensor: Tensor) -> Tensor:
    if tensor.layout is torch.strided:
        with record_function(f"{_SAVED}{tensor.untyped_storage().data_ptr()}"):
            pass
    return tensor


def _read(trace: profile, device_type: str, scopes: ModuleScopes) -> tuple[list[TracedEvent], list[TracedEvent]]:
    """Flatten the profiler's tree: the events in their order, with module, operator and phase; and the refusals.

    The operator is the outermost in its module; the phase goes by time, as autograd may run in another thread.
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
            number = node.extra_fields.sequence_number
            module, operator = scopes.of_node(number), name.removeprefix(_BACKWARD_NODE)
        elif operator is None and "::" in name:
            operator = name.removeprefix("aten::")
        waiting.extend((child, module, operator) for child in reversed(node.children))
    ordered = sorted(events, key=lambda event: event.at_ns)
    return [_in_phase(event, phases) for event in ordered], [_in_phase(event, phases) for event in refusals]


def _in_phase(event: TracedEvent, phases: list[tuple[int, int, str]]) -> TracedEvent:
    phase = next((name for start, end, name in phases if start <= event.at_ns <= end), None)
    return replace(event, phase=phase)
