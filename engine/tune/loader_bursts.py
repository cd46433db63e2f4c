"""PURE: the speed of a training that waits for the workers of its loader, whose batches come in bursts.

Workers that began together end together: one step waits, and the others of the burst follow at once. Eleven steps fed by
two workers hold five long ones or six, so their mean is off by a tenth; it is never off over whole bursts. And the first
batches were made ahead, while the training was set up: the steps that they feed are faster than those to come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

WAITS_FROM = 0.05
"""Share of a step that is spent waiting for data, from which the bursts show in the length of the steps."""


@dataclass(frozen=True, slots=True)
class Loader:
    """The loader that fed a training: its worker processes, and the batches that they make ahead."""

    workers: int = 0
    ahead: int = 0

    def steps_ahead(self, micro_batches: int) -> int:
        """Return how many steps were fed with batches that were made ahead."""
        return math.ceil(self.ahead / max(micro_batches, 1))

    def steps_of_bursts(self, micro_batches: int) -> int:
        """Return the least number of steps that consume whole bursts."""
        return max(self.workers, 1) // math.gcd(max(self.workers, 1), max(micro_batches, 1))

    def settling_steps(self, micro_batches: int) -> int:
        """Return how many more steps are to be timed than are to count."""
        return self.steps_ahead(micro_batches) + self.steps_of_bursts(micro_batches) - 1


def settled_steps(step_seconds: Sequence[float], loader: Loader, micro_batches: int) -> tuple[float, ...]:
    """Return the mean step of each whole burst after those made ahead; empty where too few steps were timed.

    >>> settled_steps([0.0, 0.2, 0.0, 0.2, 0.0], Loader(workers=2, ahead=1), 1)
    (0.1, 0.1, 0.1)
    """
    later, burst = step_seconds[loader.steps_ahead(micro_batches) :], loader.steps_of_bursts(micro_batches)
    return tuple(fmean(later[at : at + burst]) for at in range(len(later) - burst + 1))
