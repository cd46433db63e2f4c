"""PURE: what may make a larger batch of an own script fit, by the phase of its peak. Costs are named, not estimated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..estimate.alternatives import Cost
from ..progress import OPTIMIZER_STEP, TRAINING_PHASES
from ..results.result import Outcome, Probe
from .does_not_fit import LOADING

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
