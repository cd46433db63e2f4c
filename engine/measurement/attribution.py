"""Runs a batch size once more and reports what filled the memory when it was refused. Needs torch.

It runs in a separate process: hooks and names in the profiler's trace cost time, so no figure of a probe comes from
here. The events are those that the probe on a CPU counts, and the bytes are the same.

Check by hand: `python -m engine bert-tiny --device cpu --memory-limit 200MiB`; the lines after the certificate.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.profiler import ProfilerActivity, profile

from ..facts.memory_breakdown import LiveBlock, MemoryBreakdown, Request, entries_of
from ..facts.progress import Progress, no_progress
from ..facts.result import Outcome
from .device import Device
from .live_blocks import LiveMoment, after, explain, place_of
from .module_scopes import ModuleScopes
from .probe import Bench, outcome_of
from .step import TrainingStep
from .traced_step import read_trace, record_saved, recorded, recorded_module, step_begun, step_ended


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
        self.scopes = ModuleScopes(self.bench.built.model, recorded_module)

    def step_once(self, batch_size: int) -> tuple[LiveMoment | None, bool]:
        """Run one step. Return what was live at its moment (None without events), and whether it must be the last."""
        step, device, model = self.step, self.bench.device, self.bench.built.model
        step.begin()
        self.scopes.begin_step()
        module = getattr(device, "module", None)  # an accelerator
        counted_bytes = 0 if module is None else int(module.memory_allocated(device.torch_device))
        begun = step_begun(model, step, self.left, counted_bytes)
        refused = None
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as trace:
            try:
                with self.scopes.followed(), saved_tensors_hooks(_saved, lambda tensor: tensor):
                    step(batch_size, recorded)
            except Exception as exc:
                if outcome_of(exc, device) is not Outcome.OUT_OF_MEMORY:
                    raise
                refused = exc
        events, refusals = read_trace(trace, device.torch_device.type, self.scopes.of_node)
        if not events:
            return None, True
        traced = step_ended(begun, model, step, events)
        if refused is not None and refusals:
            last = refusals[-1]
            request = Request(self.refusals.requested_bytes, place_of(last), last.phase, last.operator)
            traced = replace(traced, refused=request, refused_at=sum(event.at_ns <= last.at_ns for event in events))
        found = explain(traced, None if device.has_caching_allocator else device.limit_bytes)
        self.left = after(traced)
        return found, refused is not None


def _saved(tensor: Tensor) -> Tensor:
    if tensor.layout is torch.strided:
        record_saved(tensor.untyped_storage().data_ptr())
    return tensor
