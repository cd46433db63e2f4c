"""Times training steps: in blocks for the comparison of speeds, or at one size until steady. Needs torch.

It takes the wall clock of whole steps between two device synchronisations, without a tracer. Before each block the
caching allocator is emptied and one step runs untimed, so that a block does not depend on the size before it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from ..errors import EngineError
from ..facts.progress import Progress, no_progress
from ..facts.result import Outcome
from ..facts.stats import ENOUGH_STEPS, is_steady
from ..machine.watch import MachineWatch, do_threads_sleep
from ..race.speed.comparison import TimedBlock
from .compiling import compile_by_steps, graphs_compiled
from .device import Device
from .probe import Bench, failure_of
from .step import TrainingStep

MIN_TIMED_STEPS, MAX_TIMED_STEPS, TIMING_SECONDS = 3, 50, 3.0


class BlockTimer:
    """Times blocks of steps in one process, with one optimizer whose state persists, as in a training."""

    def __init__(self, bench: Bench) -> None:
        self.device = bench.device
        self.step = TrainingStep(bench.spec, bench.built, bench.device.torch_device)
        self.has_stepped = False
        self.is_compiled = bench.spec.torch_compile
        self.compiled_sizes: set[int] = set()

    def run(self, batch_size: int, seconds: float, progress: Progress = no_progress) -> TimedBlock:
        """Time steps for `seconds`, or one; a refusal is an outcome, and this process must not be used again."""
        started = time.perf_counter()
        compiling: dict[str, Any] = {}
        try:
            if self.device.has_caching_allocator:
                self.device.start_from_clean()
            if self.is_compiled:
                compiling["compile_seconds"] = self._compile_if_new(batch_size, progress)
                started, graphs = time.perf_counter(), graphs_compiled()
            if not self.device.is_warm:
                warm_up(self.device, self.step, batch_size, progress)
            watch, begun_at, computing_since = MachineWatch(), time.perf_counter(), time.thread_time()
            times = self._steps(batch_size, seconds, progress)
            computing = (time.thread_time() - computing_since) / (time.perf_counter() - begun_at)
            if self.is_compiled:
                compiling["recompilations"] = graphs_compiled() - graphs
        except EngineError:
            raise
        except Exception as exc:  # noqa: BLE001 - the classifier distinguishes errors, and the block stores them
            return TimedBlock(batch_size, **failure_of(exc, self.device))
        conditions: dict[str, Any] = {**watch.read(), **(self.device.conditions() or {}), **compiling}
        self.step.clear_gradients()
        is_computing_known = not self.device.has_caching_allocator and do_threads_sleep(torch.get_num_threads())
        return TimedBlock(
            batch_size,
            Outcome.FITS,
            tuple(times),
            time.perf_counter() - started,
            conditions,
            micro_batches=self.step.micro_batches,
            computing_fraction=min(computing, 1.0) if is_computing_known else None,
        )

    def _compile_if_new(self, batch_size: int, progress: Progress) -> float | None:
        """Run the first steps of a size, which compile it, and return their seconds; None if it is already compiled."""
        if batch_size in self.compiled_sizes:
            return None
        progress("compiling", 1)
        started = time.perf_counter()
        compile_by_steps(lambda: one_step(self.device, self.step, batch_size))
        seconds = time.perf_counter() - started
        self.compiled_sizes.add(batch_size)
        self.has_stepped = True
        return seconds

    def _steps(self, batch_size: int, seconds: float, progress: Progress) -> list[float]:
        """Return all step times but the first, which warms up; on a CPU it counts if it is longer than a block."""
        progress("timing", 1)
        first = one_step(self.device, self.step, batch_size)
        may_count = self.has_stepped and not self.device.has_caching_allocator
        self.has_stepped = True
        times = [first] if may_count and first >= seconds else []
        while not times or sum(times) < seconds:
            progress("timing", len(times) + 1)
            times.append(one_step(self.device, self.step, batch_size))
        return times


def one_step(device: Device, step: TrainingStep, batch_size: int) -> float:
    device.synchronize()
    before = time.perf_counter()
    step.begin()
    step(batch_size)
    device.synchronize()
    return time.perf_counter() - before


def timed_steps(device: Device, step: TrainingStep, batch_size: int, progress: Progress = no_progress) -> list[float]:
    """Return the seconds of whole steps, until their median is steady or a bound is reached.

    An accelerator is warmed up once a process and timed for a second or more; progress is said while no clock runs.
    """
    if not device.is_warm:
        warm_up(device, step, batch_size, progress)
    seconds: list[float] = []
    while not _is_enough(seconds, device.least_timed_seconds):
        progress("timing", len(seconds) + 1)
        seconds.append(one_step(device, step, batch_size))
    return seconds


def _is_enough(step_seconds: Sequence[float], least_seconds: float) -> bool:
    spent_seconds = sum(step_seconds)
    if len(step_seconds) < MIN_TIMED_STEPS or spent_seconds < least_seconds:
        return False
    is_bound_reached = spent_seconds >= TIMING_SECONDS or len(step_seconds) >= MAX_TIMED_STEPS
    return is_bound_reached or (len(step_seconds) >= ENOUGH_STEPS and is_steady(step_seconds))


def warm_up(device: Device, step: TrainingStep, batch_size: int, progress: Progress = no_progress) -> None:
    deadline = time.perf_counter() + device.warm_up_seconds
    number = 0
    while time.perf_counter() < deadline:
        number += 1
        progress("warm-up", number)
        step.begin()
        step(batch_size)
        device.synchronize()
    device.is_warm = True
