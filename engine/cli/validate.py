"""Two checks a person can run against their own installation. Needs torch; runs in its own process.

`backward`: peak memory of the forward pass alone (under `no_grad`) against forward + backward. A finder that
    measured only the forward pass would promise batch sizes that do not train; the ratio says by how much.
`compiled`: a training step in eager mode against `torch.compile`: time, memory, compile seconds, and after
    how many steps the compilation has paid for itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median

import torch

from ..errors import EngineError, WorkloadFailed
from ..measurement.device import open_device
from ..measurement.oom import classify
from ..measurement.probe import Bench, BudgetMeter, Meter, run_probe
from ..measurement.step import PhaseMarker, TrainingStep, apply_precision
from ..measurement.timing import timed_steps
from ..measurement.workloads import build
from ..result import Outcome
from ..spec import MEMORY_STEPS, RunSpec
from ..units import format_bytes
from .console import RULE

BATCH_SIZE = 8
NO_ROOM = f"at batch {BATCH_SIZE} does not fit the memory there is"
Print = Callable[[str], None]


def verdict(ratio: float) -> str:
    """< 1.5 FAIL, 1.5-2.0 WARN, 2.0-3.0 PASS, > 3.0 WARN."""
    if ratio < 1.5:
        return "FAIL"
    return "PASS" if 2.0 <= ratio <= 3.0 else "WARN"


@contextmanager
def _named_failure(spec: RunSpec) -> Iterator[None]:
    """Turn whatever goes wrong with one model into the engine's own error, in a sentence."""
    try:
        yield
    except EngineError:
        raise
    except Exception as exc:
        name, text = type(exc).__name__, str(exc).strip()[:1_000]
        why = NO_ROOM if classify(name, text) is Outcome.OUT_OF_MEMORY else f"failed at batch {BATCH_SIZE}: {name}"
        raise WorkloadFailed(f"{spec.model} {why}: {text}") from exc


def backward(specs: Sequence[RunSpec], say: Print) -> int:
    """Print a row per model; 1 if any of them fails, else 0."""
    say(f"Forward only (no_grad) against forward + backward, batch {BATCH_SIZE}")
    say(RULE)
    ratios = []
    for spec in specs:
        with _named_failure(spec):
            ratios.append(_backward_row(replace(spec, optimizer="none"), say))
    say(RULE)
    return int(any(verdict(ratio) == "FAIL" for ratio in ratios))


def _backward_row(spec: RunSpec, say: Print) -> float:
    bench = _bench(spec)
    forward_bytes, forward_seconds = _measure(bench, _ForwardOnly(spec, bench.built, bench.device.torch_device))
    both_bytes, both_seconds = _measure(bench, TrainingStep(spec, bench.built, bench.device.torch_device))
    ratio = both_bytes / forward_bytes
    say(
        f"{spec.model:<12} forward {format_bytes(forward_bytes):>10} {forward_seconds:7.3f} s   "
        f"with backward {format_bytes(both_bytes):>10} {both_seconds:7.3f} s   "
        f"memory ratio {ratio:.2f} {verdict(ratio)}, time ratio {both_seconds / forward_seconds:.2f}"
    )
    return ratio


class _ForwardOnly(TrainingStep):
    """The forward pass under no_grad, in the place of a training step."""

    def __call__(self, batch_size: int, phase: PhaseMarker = TrainingStep.unmarked) -> None:
        batch = self.built.make_batch(batch_size)
        with torch.no_grad(), phase("forward"):
            self.forward(batch)


def _measure(bench: Bench, step: TrainingStep) -> tuple[int, float]:
    """Peak bytes of three steps, and the median seconds of timed ones."""
    bench.device.start_from_clean()
    meter = Meter(bench) if bench.device.has_caching_allocator else BudgetMeter(bench)
    for _ in range(MEMORY_STEPS):
        meter.run(step, BATCH_SIZE)
    seconds = timed_steps(bench.device, step, BATCH_SIZE)
    step.clear_gradients()
    if meter.allocated_bytes is None:
        raise WorkloadFailed(f"{bench.device.name} does not report its peak memory")
    return meter.allocated_bytes, median(seconds)


@dataclass(frozen=True)
class _Mode:
    """A training step in eager or compiled form."""

    compile_seconds: float
    step_seconds: float
    peak_bytes: int | None


def compiled(specs: Sequence[RunSpec], say: Print) -> int:
    """Print a row per model; 1 if torch.compile cannot run one of them, else 0."""
    say(f"Eager against torch.compile, batch {BATCH_SIZE}")
    say(RULE)
    failures = []
    for spec in specs:
        with _named_failure(spec):
            failures.append(_compiled_row(spec, say))
    say(RULE)
    return int(any(failures))


def _compiled_row(spec: RunSpec, say: Print) -> bool:
    bench = _bench(spec)
    eager = _mode(bench, compile_seconds=0.0)
    started = time.perf_counter()
    try:
        # in place, so that the parameters stay the ones that are measured
        bench.built.model.compile()
        step = TrainingStep(spec, bench.built, bench.device.torch_device)
        step(BATCH_SIZE)
        bench.device.synchronize()
        fast = _mode(bench, compile_seconds=time.perf_counter() - started)
    except (RuntimeError, ImportError, WorkloadFailed) as exc:
        reason = str(exc).partition("\n")[0][:200]
        say(f"{spec.model:<12} torch.compile does not work here: {type(exc).__name__}: {reason}")
        return True
    gained = eager.step_seconds - fast.step_seconds
    pays = f"pays after {fast.compile_seconds / gained:,.0f} steps" if gained > 0 else "never pays: not faster"
    say(
        f"{spec.model:<12} eager {eager.step_seconds:.3f} s {_size(eager)}   compiled {fast.step_seconds:.3f} s "
        f"{_size(fast)}   compile {fast.compile_seconds:.1f} s, {eager.step_seconds / fast.step_seconds:.2f}x, {pays}"
    )
    return False


def _mode(bench: Bench, compile_seconds: float) -> _Mode:
    probe = run_probe(bench, BATCH_SIZE, with_kinds=False)
    if not probe.fits:
        raise WorkloadFailed(f"{bench.spec.model} {NO_ROOM}: {probe.error_message}")
    step = TrainingStep(bench.spec, bench.built, bench.device.torch_device)
    seconds = timed_steps(bench.device, step, BATCH_SIZE)
    return _Mode(compile_seconds, median(seconds), probe.peak_allocated_bytes)


def _size(mode: _Mode) -> str:
    return "not measured" if mode.peak_bytes is None else format_bytes(mode.peak_bytes)


def _bench(spec: RunSpec) -> Bench:
    apply_precision(spec.precision)
    torch.manual_seed(0)
    device = open_device(spec)
    return Bench(spec, device, build(spec, device.torch_device))
