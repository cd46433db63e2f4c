"""PURE: what is said where a size does not fit: the memory it needed, and what may help; costs are not estimated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..estimate.alternatives import Cost
from ..facts.progress import BACKWARD, FORWARD, OPTIMIZER_STEP, TRAINING_PHASES
from ..facts.result import DeviceFacts, Outcome, Probe, Purpose, Reason, RunResult
from ..settings.catalog import Workload
from ..settings.catalog.stored_workload import is_own_training, stored_workload
from ..settings.optimizers import OPTIMIZERS
from ..settings.spec import trained_settings
from ..text.units import format_bytes

_REQUEST = re.compile(r"[Tt]ried to allocate (\d[\d.]* (?:bytes|[KMGT]iB))")
LOADING, EVALUATION = "loading the model", "evaluation"
_WHERE = {
    FORWARD: " in the forward pass",
    BACKWARD: " in the backward pass",
    OPTIMIZER_STEP: " in the optimizer step",
    EVALUATION: " in the evaluation",
    "checkpoint": " in saving a checkpoint",
    LOADING: " while the model was loaded",
}

_SMALLER_EVALUATION = "A smaller batch in the evaluation, where the script sets it apart from the training's."


class WaysToFit(NamedTuple):
    need: str | None = None
    suggestions: Sequence[str] = ()


def ways_to_fit(result: RunResult) -> WaysToFit:
    """Return how much memory was needed, and what may make the model fit; nothing where a size trained."""
    if result.largest is not None or result.boundary.reason is Reason.FOREIGN_MEMORY:
        return WaysToFit()
    spec, device = trained_settings(result.spec.to_dict()), result.device
    refusal = refusing_probe(result.probes, result.boundary.refused_batch_size)
    need = describe_need(refusal, device.limit_bytes or device.capacity_bytes)
    if is_own_training(spec):  # no setting is known but this one
        is_evaluation = refusal is not None and refusal.failed_phase == EVALUATION
        return WaysToFit(need, [_SMALLER_EVALUATION] if is_evaluation else [])
    optimizer, is_checkpointed = spec.get("optimizer", ""), bool(spec.get("gradient_checkpointing"))
    workload = stored_workload(spec)
    tries = suggestions(refusal, workload, device, optimizer=optimizer, is_checkpointed=is_checkpointed)
    return WaysToFit(need, tries)


def refusing_probe(probes: Iterable[Probe], batch_size: int | None) -> Probe | None:
    """Return the probe that refused this size: the one in a fresh process where there are two."""
    refused = [probe for probe in probes if probe.batch_size == batch_size and probe.outcome is not Outcome.FITS]
    return max(refused, key=lambda probe: (probe.fresh_process, probe.purpose is Purpose.CONFIRM), default=None)


def describe_need(refusal: Probe | None, limit_bytes: int) -> str | None:
    """Say how much memory was needed and available, as far as known; None where nothing is known.

    On a CPU the peak is a lower bound: a later step may need more. Of an allocator only the last request is known.
    """
    if refusal is None or refusal.outcome is not Outcome.OUT_OF_MEMORY:
        return None
    where = _WHERE.get(refusal.failed_phase or "", "")
    size, available = refusal.batch_size, f"{format_bytes(limit_bytes)} were available"
    if refusal.error_type == "BudgetExceeded" and refusal.peak_allocated_bytes is not None:
        return f"Batch {size} needed at least {format_bytes(refusal.peak_allocated_bytes)}{where}; {available}."
    request = _REQUEST.search(refusal.error_message or "")
    if request is None:
        return None
    reached = f" after {format_bytes(refusal.memory_bytes)}" if refusal.memory_bytes is not None else ""
    return f"Batch {size} requested another {request[1]}{reached}{where}; {available}."


def suggestions(
    refusal: Probe | None, workload: Workload | None, device: DeviceFacts, *, optimizer: str, is_checkpointed: bool
) -> list[str]:
    """Return what may make the model fit, by what held the memory: activations only if they were part of the peak."""
    phase = None if refusal is None else refusal.failed_phase
    less_state, chosen = [], OPTIMIZERS.get(optimizer)
    if phase != LOADING and chosen is not None and chosen.state_copies >= 1:
        copies = "an extra copy" if chosen.state_copies == 1 else "two extra copies"
        less_state = [f"An optimizer with less state: {chosen.label} keeps {copies} of the parameters."]
    capacity, limit_bytes = format_bytes(device.capacity_bytes), device.limit_bytes or device.capacity_bytes
    tries = [f"A device with more memory: this one has {capacity}."]
    if limit_bytes < device.capacity_bytes:
        of = f"{format_bytes(limit_bytes)} of the device's {capacity}"
        tries = [f"A higher memory limit: this run was limited to {of}."]
    if phase == OPTIMIZER_STEP:  # activations are gone by then
        return tries + less_state
    if workload is None or phase == LOADING:
        return tries
    if workload.has_gradient_checkpointing and not is_checkpointed:
        tries.append("Gradient checkpointing: stores fewer activations, but each step computes more.")
    tries.append(f"A smaller {workload.input_field.replace('_', ' ')}.")
    return tries + less_state


_WITHOUT_ACTIVATIONS = (OPTIMIZER_STEP, LOADING)
_SPLIT_BELOW = 0.75
"""A split's smaller size has at most this share of the largest: the difference of two close ones is mostly noise."""
_OF_THE_BATCH = (
    ("Smaller micro-batches, gradients added up", Cost.SMALLER_PIECES.text),
    ("Attention by SDPA or FlashAttention", Cost.OTHER_KERNEL.text),
    ("Gradient checkpointing", Cost.RECOMPUTATION.text),
    ("bf16 autocast", Cost.ROUNDING.text),
    ("Shorter rows or smaller images", Cost.SMALLER_INPUTS.text),
)
_OF_THE_MODEL = (
    ("8-bit AdamW", Cost.ROUNDED_STATE.text),
    ("Adafactor, or SGD without momentum", Cost.OTHER_UPDATES.text),
    ("LoRA adapters", Cost.OTHER_WEIGHTS.text),
)


@dataclass(frozen=True, slots=True)
class Split:
    """The peak of the largest size: what grows with the batch and what does not, derived from two sizes."""

    batch_size: int
    smaller_batch_size: int
    growing_bytes: int
    fixed_bytes: int

    @property
    def bytes_per_sample(self) -> int:
        return self.growing_bytes // self.batch_size


@dataclass(frozen=True, slots=True)
class ScriptChanges:
    """What to try for a larger batch, each change with its cost; `phase` is that of the peak, None where unknown."""

    phase: str | None
    split: Split | None
    of_the_batch: tuple[tuple[str, str], ...]
    of_the_model: tuple[tuple[str, str], ...]

    @property
    def is_optimizer_step(self) -> bool:
        """Whether the activations are freed at the peak, so that nothing about the batch lowers it."""
        return self.phase == OPTIMIZER_STEP


def script_changes(probes: Iterable[Probe]) -> ScriptChanges | None:
    tried = list(probes)
    refused = [probe for probe in tried if probe.outcome is Outcome.OUT_OF_MEMORY]
    if not refused:
        return None
    fitting = {p.batch_size: p for p in tried if p.outcome is Outcome.FITS and p.peak_allocated_bytes is not None}
    largest = fitting[max(fitting)] if fitting else None
    phase = min(refused, key=lambda probe: probe.batch_size).failed_phase or (largest.peak_phase if largest else None)
    of_the_batch = () if phase in _WITHOUT_ACTIVATIONS else _OF_THE_BATCH
    return ScriptChanges(phase, _split(fitting), of_the_batch, _OF_THE_MODEL)


def _split(fitting: dict[int, Probe]) -> Split | None:
    """Split the largest peak by a smaller size's in the same phase, in which peaks lie on a line; None without one."""
    if not fitting:
        return None
    size = max(fitting)
    largest = fitting[size]
    alike = [
        smaller
        for smaller, probe in fitting.items()
        if smaller <= size * _SPLIT_BELOW
        and probe.peak_phase in TRAINING_PHASES
        and probe.peak_phase == largest.peak_phase
    ]
    if not alike:
        return None
    smaller = max(alike)
    high, low = largest.peak_allocated_bytes or 0, fitting[smaller].peak_allocated_bytes or 0
    growing = (high - low) * size // (size - smaller)
    return Split(size, smaller, growing, high - growing) if 0 < growing <= high else None
