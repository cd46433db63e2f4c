"""PURE: what the timed steps of a start tell, also where they are fed by the bursts of a loader's workers.

Workers that began together end together: one step waits, and the others of the burst follow at once. Eleven steps fed
by two workers hold five long ones or six, so their mean is off by a tenth; over whole bursts it is never off. The
first batches were made ahead, while the training was set up, so the first steps are faster than later ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

from ....facts.result import Probe
from ....facts.stats import samples_per_second
from ..notes.reading import Reading, Step
from .batch_size import Unit

LEAST_STEPS = 3
"""The fewest whose memory is read in a start, before any is timed."""
WAITS_FROM = 0.05
"""Share of a step that is spent waiting for data, from which the bursts show in the length of the steps."""
TIMED_SECONDS, BLOCK_SECONDS, TIMED_STEPS = 2.0, 0.5, (3, 500)
"""What counts in each start, and in each further block of one that is held: these seconds, and 3 to 500 steps."""


@dataclass(frozen=True, slots=True)
class Loader:
    """The loader that fed a training: its worker processes, and the batches each makes ahead."""

    workers: int = 0
    ahead: int = 0

    def steps_ahead(self, micro_batches: int) -> int:
        return math.ceil(self.ahead / max(micro_batches, 1))

    def steps_of_bursts(self, micro_batches: int) -> int:
        return max(self.workers, 1) // math.gcd(max(self.workers, 1), max(micro_batches, 1))

    def settling_steps(self, micro_batches: int) -> int:
        return self.steps_ahead(micro_batches) + self.steps_of_bursts(micro_batches) - 1


def settled_steps(step_seconds: Sequence[float], loader: Loader, micro_batches: int) -> tuple[float, ...]:
    """Return the mean step of each whole burst after those made ahead; empty where too few steps were timed.

    >>> settled_steps([0.0, 0.2, 0.0, 0.2, 0.0], Loader(workers=2, ahead=1), 1)
    (0.1, 0.1, 0.1)
    """
    later, burst = step_seconds[loader.steps_ahead(micro_batches) :], loader.steps_of_bursts(micro_batches)
    return tuple(fmean(later[at : at + burst]) for at in range(len(later) - burst + 1))


def steps_to_time(step_seconds: float | None, seconds: float = TIMED_SECONDS) -> int:
    least, most = TIMED_STEPS
    return min(max(least, round(seconds / step_seconds)), most) if step_seconds else least


@dataclass(frozen=True, slots=True)
class Timing:
    """The timed steps of a start, of whole bursts if `is_settled`; `settling_steps` are to be timed beyond those."""

    step_seconds: tuple[float, ...] = ()
    waiting_fraction: float | None = None
    """The share of its timed steps that the slowest-fed rank waited for a DataLoader; None where none was seen."""
    tokens_per_second: float | None = None
    settling_steps: int = 0
    is_settled: bool = False
    counts_all: bool = False
    computing_fraction: float | None = None
    collecting_fraction: float = 0.0
    """The share of the timed steps in which Python collected garbage: `step_seconds` are without."""

    @classmethod
    def of(
        cls, readings: Sequence[Reading], batch_size: int, micro_batches: int, unit: Unit, *, counts_all: bool | None
    ) -> Timing:
        """Time steps that consumed as much as most; all where `counts_all`, or where it is None and most differ."""
        ranks, loader = [r.steps() for r in readings], Loader(*readings[0].data.get("loader", ()))
        timed = timed_pairs(ranks[0])
        full = [(a, b) for a, b in timed if unit.held(b, batch_size) == micro_batches]
        if counts_all is None:
            counts_all = 2 * len(full) <= len(timed)
        counted = timed if counts_all else full
        own_seconds = readings[0].data.get("own_seconds", 0.0)  # of the watch, in each step
        step_seconds = [_without(b.ended_at - a.ended_at, b.collected_seconds + own_seconds) for a, b in counted]
        collected = sum(b.collected_seconds for _, b in counted)
        collecting = collected / (collected + sum(step_seconds)) if collected else 0.0
        waiting = max((share for steps in ranks if (share := _waiting(steps)) is not None), default=None)
        tokens = _tokens_per_second(ranks)
        settling = loader.settling_steps(micro_batches) if waiting is not None and waiting >= WAITS_FROM else 0
        settled = settled_steps(step_seconds, loader, micro_batches) if settling else ()
        if tokens is not None and settled:
            tokens *= fmean(step_seconds) / fmean(settled)
        computing = computing_fraction(readings)
        return cls(
            settled or tuple(step_seconds), waiting, tokens, settling, bool(settled), counts_all, computing, collecting
        )

    @property
    def typical_seconds(self) -> float | None:
        """The middle step; of bursts that were not seen whole the mean, because most of their steps do not wait."""
        if not self.step_seconds:
            return None
        return (fmean if self.settling_steps and not self.is_settled else median)(self.step_seconds)

    def per_second(self, samples: int) -> float | None:
        return None if self.typical_seconds is None else samples_per_second(samples, self.typical_seconds)


UNTIMED = Timing()


def _without(step_seconds: float, other_seconds: float) -> float:
    """Return a step without what is no part of it; of a step that follows at once within a burst some is left."""
    return step_seconds - min(other_seconds, 0.9 * step_seconds)


def mean_speed(probe: Probe) -> float:
    """Return the samples a second over all timed steps: where data comes in bursts, the median step is too short."""
    return samples_of_a_step(probe) / fmean(probe.timed_step_seconds)


def samples_of_a_step(probe: Probe) -> float:
    return (probe.samples_per_second or 0.0) * (probe.step_seconds or 0.0)


def timed_pairs(steps: Sequence[Step]) -> list[tuple[Step, Step]]:
    """Return each timed step behind the one before it; those with an evaluation in between only where most have one.

    A large batch ends a pass over the data, and is evaluated, in the seconds in which a small one does not.
    """
    timed = [(a, b) for a, b in pairwise(steps) if a.is_timed]
    alone = [(a, b) for a, b in timed if not b.has_evaluated]
    return alone if 2 * len(alone) >= len(timed) else timed


def computing_fraction(readings: Sequence[Reading]) -> float | None:
    """Return the share of timed steps in which a CPU's training had a core; None if it waits for workers or ranks."""
    waits = len(readings) > 1 or Loader(*readings[0].data.get("loader", ())).workers
    found: float | None = readings[0].data.get("computing_fraction")
    return min(found, 1.0) if found and not waits else None


def _waiting(steps: Sequence[Step]) -> float | None:
    """Return the share of the timed steps that was spent waiting for data; None where no loader gave any."""
    timed = timed_pairs(steps)
    whole = sum(b.ended_at - a.ended_at for a, b in timed)
    has_loader = any(b.batches for _, b in timed)
    return sum(b.waited_seconds for _, b in timed) / whole if has_loader and whole > 0 else None


def _tokens_per_second(ranks: Sequence[Sequence[Step]]) -> float | None:
    """Return the tokens that all ranks were given in their timed steps, a second; None where there are none."""
    found = 0.0
    for steps in ranks:
        timed = timed_pairs(steps)
        seconds = sum(b.ended_at - a.ended_at for a, b in timed)
        tokens = sum(each.tokens or 0 for _, step in timed for each in step.forwards)
        found += tokens / seconds if seconds > 0 else 0.0
    return found or None
