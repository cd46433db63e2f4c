"""Runs what a validation compares: training steps, forward passes and their gradients. Needs torch.

`backward`: peak memory of the forward pass alone (under `no_grad`) against forward + backward, because a finder of the
    forward pass alone would promise sizes that do not train; and the gradients against those of the next more exact
    precision.
`compile`: a training step in eager mode against `torch.compile`: time, memory, seconds of compilation, and gradients.

Gradients are compared with dropout off, of the same weights and the same batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import EngineError, WorkloadFailed
from ...facts.progress import FORWARD
from ...facts.provenance.read import run_facts
from ...facts.result import Outcome
from ...machine.execution import Emit, Execution
from ...measurement.batches import Batch
from ...measurement.compiling import compile_by_steps, compile_for_each_size
from ...measurement.device import open_device
from ...measurement.environment import check_environment, environment
from ...measurement.oom import classify
from ...measurement.probe import Bench, BudgetMeter, Meter
from ...measurement.step import PhaseMarker, TrainingStep, apply_precision
from ...measurement.timing import one_step, timed_steps
from ...measurement.workloads import build
from ...settings.spec import MEMORY_STEPS
from . import verdict as verdicts
from .spec import BACKWARD, ValidationSpec, reference_of
from .verdict import Check, StepFigures, ValidationResult

SEED = 0
_FP16_SCALE = 1024.0
"""Factor of the loss: without it small gradients would vanish in fp16, which training scales for the same reason."""
_NO_LOSS = "{} has no loss in eval mode, and with dropout or sampling two passes differ by chance"
_NO_TIME = "the time budget was spent before"


def validate(
    spec: ValidationSpec,
    emit: Emit,
    *,
    keep: Callable[[ValidationResult], None] = lambda _: None,
    started_as: Mapping[str, Any] | None = None,
) -> ValidationResult:
    """Run one validation. Raises EngineError if not even its first step can be run.

    `keep` stores the result before its event (its OSError is logged); `started_as`: `run_facts()`, if read before.
    """
    execution = Execution(emit, spec.time_budget_seconds)
    return execution.finish(_Validation(spec, execution, started_as or run_facts()).run(), keep)


class _Validation:
    def __init__(self, spec: ValidationSpec, execution: Execution, started_as: Mapping[str, Any]) -> None:
        self.spec, self.execution, self.started_as = spec, execution, started_as
        # the state of an optimizer would hide what the backward pass takes; torch.compile is compared with eager mode
        changed: dict[str, Any] = {"optimizer": "none"} if spec.check == BACKWARD else {"torch_compile": False}
        self.run_spec = replace(spec.run_spec(), **changed)
        self.checks: list[Check] = []
        self.steps: dict[str, StepFigures] = {}

    def run(self) -> ValidationResult:
        self.execution.begin(self.spec)
        self.execution.phase("preparing")
        with _named_failure(self.spec):
            apply_precision(self.spec.precision)
            torch.manual_seed(SEED)
            device = open_device(self.run_spec)
            check_environment(self.run_spec, device.torch_device.type)
            bench = Bench(self.run_spec, device, build(self.run_spec, device.torch_device))
            facts = device.facts()
            versions = {**environment(self.run_spec, device), **self.started_as}
            self.execution.emit_event("device", device=facts.to_dict(), environment=versions)
            (self._backward if self.spec.check == BACKWARD else self._compile)(bench)
        return ValidationResult(self.spec, facts, tuple(self.checks), self.steps, versions, self.execution.seconds)

    def _backward(self, bench: Bench) -> None:
        self.execution.phase("memory")
        forward = _ForwardOnly(self.run_spec, bench.built, bench.device.torch_device)
        self.steps["forward"] = self._step_figures(bench, forward)
        both = TrainingStep(self.run_spec, bench.built, bench.device.torch_device)
        self.steps["forward_and_backward"] = self._step_figures(bench, both)
        alone, together = (figures.peak_bytes for figures in self.steps.values())
        if not alone or not together:
            raise WorkloadFailed(f"{bench.device.name} does not report its peak memory")
        self._add(verdicts.check_of_memory_ratio(alone, together))
        self.execution.phase("gradients")
        spec, reference = self.spec, reference_of(self.spec.precision)
        own = self._gradients(bench, lambda: _gradients(bench, spec.batch_size), reference)
        if own is None:
            return
        more_exact = self._gradients(bench, lambda: _reference_gradients(bench, spec.batch_size, reference), reference)
        if more_exact is not None:
            difference = difference_of(own, more_exact)
            self._add(verdicts.check_of_gradients(spec.precision, difference, spec.tolerance))

    def _compile(self, bench: Bench) -> None:
        spec, against = self.spec, "those of eager mode"
        self.execution.phase("memory")
        eager = TrainingStep(self.run_spec, bench.built, bench.device.torch_device)
        self.steps["eager"] = self._step_figures(bench, eager)
        self.execution.phase("compiling")
        if self.execution.seconds_left < 0:
            self._add(verdicts.not_checked("compiles", verdicts.COMPILES, _NO_TIME))
            return
        started = time.perf_counter()
        try:
            compile_for_each_size(bench.built.model)
            compiled_step = TrainingStep(self.run_spec, bench.built, bench.device.torch_device)
            compile_by_steps(lambda: one_step(bench.device, compiled_step, spec.batch_size))
        except (RuntimeError, ImportError) as exc:
            self._add(Check("compiles", verdicts.COMPILES, verdicts.Verdict.FAILED, _first_line(exc)))
            return
        seconds = time.perf_counter() - started
        compiled = self._step_figures(bench, compiled_step, compile_seconds=seconds)
        self.steps["compiled"] = compiled
        self._add(verdicts.check_of_compile_time(compiled))
        self._add(verdicts.check_of_speed(self.steps["eager"], compiled))
        self._add(verdicts.check_of_compiled_memory(self.steps["eager"], compiled))
        self.execution.phase("gradients")
        # both here, after the last optimizer step: of other weights they would differ
        after = self._gradients(bench, lambda: _gradients(bench, spec.batch_size), against)
        if after is None:
            return
        with torch.compiler.set_stance("force_eager"):
            eager_gradients = self._gradients(bench, lambda: _gradients(bench, spec.batch_size), against)
        if eager_gradients is not None:
            difference = difference_of(after, eager_gradients)
            self._add(verdicts.check_of_gradients(f"compiled {spec.precision}", difference, spec.tolerance, against))

    def _gradients(self, bench: Bench, compute: Callable[[], list[Tensor]], reference: str) -> list[Tensor] | None:
        """Compute gradients; None, with a check that says why, where they cannot be compared."""
        claim = f"the gradients of {self.spec.precision} agree with {reference}"
        reason = None
        if not self.spec.workload.has_eval_loss:
            reason = _NO_LOSS.format(self.spec.model)
        elif self.execution.seconds_left < 0:
            reason = _NO_TIME
        elif reference == "fp64" and bench.device.torch_device.type == "mps":
            reason = "this device has no fp64"
        if reason is None:
            try:
                return compute()
            except (RuntimeError, MemoryError) as exc:
                is_full = classify(type(exc).__name__, str(exc)) is Outcome.OUT_OF_MEMORY
                reason = "the memory does not hold the gradients of both" if is_full else _first_line(exc)
        self._add(verdicts.not_checked("gradients", claim, reason))
        return None

    def _step_figures(self, bench: Bench, step: TrainingStep, compile_seconds: float | None = None) -> StepFigures:
        """Measure the peak bytes of a few steps, and the seconds of timed ones."""
        bench.device.start_from_clean()
        meter = Meter(bench) if bench.device.has_caching_allocator else BudgetMeter(bench)
        for number in range(1, MEMORY_STEPS + 1):
            self.execution.emit_event("progress", purpose="memory", batch_size=self.spec.batch_size, step=number)
            meter.run(step, self.spec.batch_size)
        seconds = timed_steps(bench.device, step, self.spec.batch_size)
        step.clear_gradients()
        return StepFigures(meter.allocated_bytes, tuple(seconds), compile_seconds)

    def _add(self, check: Check) -> None:
        self.checks.append(check)
        level = "info" if check.verdict is verdicts.Verdict.PASSED else "warning"
        self.execution.log(f"{check.text} ({check.finding})", level)


class _ForwardOnly(TrainingStep):
    """The forward pass under no_grad, in the place of a training step."""

    def __call__(self, batch_size: int, phase: PhaseMarker = nullcontext) -> None:
        batch = self.built.make_batch(batch_size)
        with torch.no_grad(), phase(FORWARD):
            self.forward(batch)


@contextmanager
def _named_failure(spec: ValidationSpec) -> Iterator[None]:
    try:
        yield
    except EngineError:
        raise
    except Exception as exc:
        name, text, size = type(exc).__name__, str(exc).strip()[:1_000], spec.batch_size
        is_full = classify(name, text) is Outcome.OUT_OF_MEMORY
        why = f"at batch {size} does not fit the memory there is" if is_full else f"failed at batch {size}: {name}"
        raise WorkloadFailed(f"{spec.model} {why}: {text}") from exc


def _first_line(exc: BaseException) -> str:
    return f"{type(exc).__name__}: {str(exc).strip().partition(chr(10))[0][:200]}"


def _gradients(bench: Bench, batch_size: int) -> list[Tensor]:
    """Return the gradients of one batch in the precision of the spec, as fp32 on the device."""
    step = TrainingStep(bench.spec, bench.built, bench.device.torch_device)
    with _without_dropout(bench.built.model):
        step.clear_gradients()
        torch.manual_seed(SEED)
        loss = step.forward(bench.built.make_batch(batch_size))
        scale = _FP16_SCALE if bench.spec.precision == "fp16" else 1.0
        (loss * scale).backward()
    return [gradient / scale for gradient in _taken(bench.built.model)]


def _reference_gradients(bench: Bench, batch_size: int, reference: str) -> list[Tensor]:
    """Return the gradients of the same weights and batch in the more exact precision, in which the model stays."""
    model, dtype = bench.built.model, torch.float64 if reference == "fp64" else torch.float32
    apply_precision("fp32")
    torch.manual_seed(SEED)
    made: Batch = bench.built.make_batch(batch_size)
    batch = {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in made.items()}
    model.to(dtype)
    with _without_dropout(model):
        model.zero_grad(set_to_none=True)
        bench.built.loss(bench.built.forward(batch), batch).backward()
    return _taken(model)


def _taken(model: nn.Module) -> list[Tensor]:
    """Take the gradients of what is learned, in a fixed order; what got none counts as zero."""
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    taken = [torch.zeros_like(each) if each.grad is None else each.grad.detach() for each in learned]
    model.zero_grad(set_to_none=True)
    return [each.double() if each.dtype is torch.float64 else each.float() for each in taken]


@contextmanager
def _without_dropout(model: nn.Module) -> Iterator[None]:
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def difference_of(gradients: list[Tensor], reference: list[Tensor]) -> float | None:
    """Return |g - r| / |r| over all gradients together (2-norm); None where a number is not finite."""
    squares, length = 0.0, 0.0
    for own, right in zip(gradients, reference, strict=True):
        squares += (own.to(right.dtype) - right).square().sum().item()
        length += right.square().sum().item()
    ratio = (squares / length) ** 0.5 if length > 0 else float(squares > 0)
    return ratio if ratio < float("inf") else None
