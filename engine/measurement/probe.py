"""Tries one batch size: runs full training steps and reads their memory. Needs torch. `timing` times steps.

How it measures
  memory, accelerators: the caching allocator's own peak counters, read at the end of each phase.
  memory, CPU: the allocator's own events of every step under `torch.profiler`, replayed by `live_blocks`;
    it is the only figure of a CPU that is repeatable to the byte.
  kinds of memory: one more step under the profiler, whose peak is not reported.

Check by hand: `python -m engine bert-tiny --device cpu --memory-limit 200MiB --json | python -m json.tool`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch.profiler import ProfilerActivity, profile

from ..errors import EngineError, WorkloadFailed
from ..facts.progress import Progress, no_progress
from ..facts.result import Outcome, Probe, Purpose
from ..settings.spec import MEMORY_STEPS, RunSpec
from ..text.units import describe_over, format_bytes
from .compiling import compile_by_steps
from .device import Device, Memory
from .live_blocks import LiveMoment, explain
from .oom import classify
from .step import PhaseMarker, TrainingStep
from .traced_step import read_trace, recorded, step_begun, step_ended
from .workloads import Built

MESSAGE_LENGTH = 1_000


class BudgetExceeded(Exception):
    """A step on the CPU held more tensor bytes than the memory limit allows."""


class CapacityExceeded(Exception):
    """The driver handed out more memory than the device has."""


@dataclass(frozen=True)
class Bench:
    """A model on its device, ready to be probed: what a worker process holds between probes."""

    spec: RunSpec
    device: Device
    built: Built


class Meter:
    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.steps = 0
        self.phase: str | None = None
        self.peak: LiveMoment | None = None
        self.allocated_bytes: int | None = None
        self.reserved_bytes: int | None = None
        self.peak_phase: str | None = None

    def run(self, step: TrainingStep, batch_size: int) -> None:
        """Run one full step; raises what the step raises."""
        step.begin()
        step(batch_size, self.marked)
        self.steps += 1

    @contextmanager
    def _counted(self, phase: str) -> Iterator[None]:
        self.phase = phase
        yield
        self.read()

    def marked(self, phase: str) -> AbstractContextManager[Any]:
        return self._counted(phase)

    def read(self) -> None:
        """Read the counters; the phase in which the highest value first appears holds the peak."""
        allocated, reserved = self.bench.device.peaks()
        if allocated is not None and allocated > (self.allocated_bytes or -1):
            self.allocated_bytes, self.peak_phase = allocated, self.phase
        if reserved is not None:
            self.reserved_bytes = max(reserved, self.reserved_bytes or 0)


class BudgetMeter(Meter):
    """Peak memory on the CPU, by replaying the allocator's events, compared with the memory limit."""

    def marked(self, phase: str) -> AbstractContextManager[Any]:
        self.phase = phase
        return recorded(phase)

    def run(self, step: TrainingStep, batch_size: int) -> None:
        peak = profiled_step(self.bench, step, batch_size, self.marked)
        if peak is None:
            raise WorkloadFailed("the CPU allocator reported no events: this torch cannot be measured")
        self.steps += 1
        if peak.total_bytes > (self.allocated_bytes or -1):
            self.peak, self.allocated_bytes, self.peak_phase = peak, peak.total_bytes, peak.request.phase
        if peak.total_bytes > self.bench.device.limit_bytes:
            self.phase = peak.request.phase
            over = describe_over(peak.total_bytes, self.bench.device.limit_bytes)
            raise BudgetExceeded(f"out of memory: the peak of step {self.steps} is {over}")


def run_probe(
    bench: Bench,
    batch_size: int,
    *,
    steps: int = MEMORY_STEPS,
    with_kinds: bool = True,
    progress: Progress = no_progress,
) -> Probe:
    """Train `steps` full steps of `batch_size` and read its memory; `with_kinds` also what held it.

    An exception of a step is an outcome, but for faults that the engine finds in it (WorkloadFailed). After any outcome
    but FITS this process must not be used again: what the failed step left would distort later probes.
    """
    started = time.perf_counter()
    device = bench.device
    device.start_from_clean()
    retries = device.allocator_retries()
    meter = Meter(bench) if device.has_caching_allocator else BudgetMeter(bench)
    step = TrainingStep(bench.spec, bench.built, device.torch_device)
    failure: dict[str, Any] = {}
    try:
        if bench.spec.torch_compile:
            progress("compiling", 1)
            compile_by_steps(partial(_unmeasured_step, step, batch_size))
        for number in range(1, steps + 1):
            progress("memory", number)
            meter.run(step, batch_size)
        device.synchronize()
        memory, retries_after = device.memory(), device.allocator_retries()
        check_capacity(meter.reserved_bytes, device.capacity_bytes)
    except EngineError:
        raise
    except Exception as exc:  # noqa: BLE001 - the classifier distinguishes errors, and the probe stores them
        failure = {**failure_of(exc, device), "failed_phase": meter.phase}
        meter.read()
        memory, retries_after = memory_if_possible(device)._replace(used_bytes=None), device.allocator_retries()
    if not failure and with_kinds and meter.peak is None:
        progress("kinds", 1)
        meter.peak = _peak_by_kind(bench, step, batch_size)
    step.clear_gradients()
    return Probe(
        batch_size=batch_size,
        purpose=Purpose.SEARCH,
        steps=meter.steps,
        peak_allocated_bytes=meter.allocated_bytes,
        peak_reserved_bytes=meter.reserved_bytes,
        device_used_bytes=memory.used_bytes,
        beside_bytes=memory.beside_bytes,
        allocator_retries=None if retries_after is None else retries_after - (retries or 0),
        peak_phase=meter.peak_phase,
        memory_by_kind=meter.peak.by_kind if meter.peak and not failure else None,
        wall_seconds=time.perf_counter() - started,
        **{"outcome": Outcome.FITS, **failure},
    )


def _unmeasured_step(step: TrainingStep, batch_size: int) -> None:
    step.begin()
    step(batch_size)


def check_capacity(reserved_bytes: int | None, capacity_bytes: int) -> None:
    """Refuse more than the device can have held: some drivers continue in the host's memory, tens of times slower."""
    if reserved_bytes is not None and reserved_bytes > capacity_bytes:
        raise CapacityExceeded(
            f"out of memory: the allocator reserved {format_bytes(reserved_bytes)} of a device that has "
            f"{format_bytes(capacity_bytes)}; the driver took the rest from the host"
        )


def _peak_by_kind(bench: Bench, step: TrainingStep, batch_size: int) -> LiveMoment | None:
    """Return the memory by kind of one more step under the profiler, if possible; a refusal there decides nothing."""
    try:
        return profiled_step(bench, step, batch_size)
    except RuntimeError as exc:
        if outcome_of(exc, bench.device) is Outcome.ERROR:
            raise WorkloadFailed(f"the profiled step failed: {type(exc).__name__}: {first_lines(exc)}") from exc
        return None


def profiled_step(
    bench: Bench, step: TrainingStep, batch_size: int, marked: PhaseMarker = recorded
) -> LiveMoment | None:
    """Run one step under the profiler; return the peak with its blocks, or None where the allocator has no events."""
    step.begin()
    begun = step_begun(bench.built.model, step)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as trace:
        step(batch_size, marked)
    events, _ = read_trace(trace, bench.device.torch_device.type)
    return explain(step_ended(begun, bench.built.model, step, events), None) if events else None


def outcome_of(exc: Exception, device: Device) -> Outcome:
    free_bytes = memory_if_possible(device).free_bytes
    outcome = classify(type(exc).__name__, str(exc), free_bytes=free_bytes, total_bytes=device.capacity_bytes)
    return outcome or Outcome.ERROR


def memory_if_possible(device: Device) -> Memory:
    """Read the memory of a device whose last call failed; it is unknown where the driver does not answer any more."""
    try:
        return device.memory()
    except RuntimeError:
        return Memory()


def first_lines(exc: BaseException) -> str:
    return str(exc).strip()[:MESSAGE_LENGTH]


def failure_of(exc: Exception, device: Device) -> dict[str, Any]:
    """Return what a step raised, as the members of a probe, a timed block and losses."""
    return {
        "outcome": outcome_of(exc, device),
        "error_type": type(exc).__name__,
        "error_message": first_lines(exc),
    }
