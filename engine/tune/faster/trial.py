"""PURE: what one start of a variant showed beside today's: the losses of the same batches, its memory, its speed.

Today's training is started twice: what its own losses differ by from start to start explains as much of a variant's.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from ...race.numbers import UNKNOWN, Numbers, compare_numbers
from ...settings.step_settings import ROUNDING_TOLERANCES
from ..evidence import Evidence
from ..speed.timed_steps import samples_of_a_step
from .facts import QUEUE


@dataclass(frozen=True, slots=True)
class Trial:
    """One start: what was measured of it, and what the hook noted. `losses` are those that are compared.

    `warm_up_seconds` go from the first batch or forward pass to the end of the steps whose memory was read.
    """

    evidence: Evidence
    losses: tuple[float, ...]
    warm_up_seconds: float

    @property
    def memory_bytes(self) -> int:
        return self.evidence.probe.memory_bytes or 0

    @property
    def step_seconds(self) -> float:
        return fmean(self.evidence.probe.timed_step_seconds)


def settled_speed(evidence: Evidence, workers: int) -> float:
    """Return the samples a second of the timed steps, without those fed from batches made in advance."""
    steps = evidence.probe.timed_step_seconds
    later = steps if evidence.timing.is_settled else steps[workers * QUEUE :] or steps
    return samples_of_a_step(evidence.probe) / fmean(later)


def numbers_of(trial: Trial, today: Trial, noise: float | None, rounds_as: str) -> Numbers:
    """Return whether a variant trains the same, where two starts of today's training differ by `noise`.

    Not known where no loss was seen, or noise hides more than rounding would.
    """
    if noise is None:
        return UNKNOWN
    return compare_numbers(trial.losses, today.losses, noise, ROUNDING_TOLERANCES[rounds_as])
