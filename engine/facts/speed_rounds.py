"""The rounds of a comparison of speeds, for others to repeat the decision. Each size's timing probe has the steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean


class Stage(StrEnum):
    """What a round is for: to choose the sizes that are compared, or to compare them."""

    SELECTION = "selection"
    EVALUATION = "evaluation"


class SpeedClaim(StrEnum):
    """What a comparison of speeds shows about the recommended size and today's."""

    FIGURE = "figure"
    """The speed-up is known well enough to state it."""
    AT_LEAST = "at_least"
    """The interval is too wide for a figure, but its lower end is a clear gain: that bound is stated."""
    NO_GAIN = "no_gain"
    """The interval is too wide for a figure, but its upper end is no gain: today's size is as good."""
    AHEAD = "ahead"
    """Other work disturbed it, so no factor is known: the recommended one was faster in every round of it."""
    NOTHING = "nothing"
    """The interval holds a gain and a loss, or nothing was compared."""


@dataclass(frozen=True, slots=True)
class ComparedSizes:
    """Two sizes, and how many times as fast the first is as the second, at least and at most."""

    batch_size: int
    other: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SpeedBlock:
    """Steps of one size, run one after the other within a round.

    `step_seconds` is a typical one: their median, or of a script's starts their mean, as data may come in bursts. The
    `steps` themselves are `timed_step_seconds` of the size's timing probe, from `first_step` on, counted from 0. A step
    has `micro_batches` of `batch_size` samples each, of all ranks. `others_cores` is what other work used meanwhile;
    None where it is unknown. `was_held`: the block was no start of its own.

    `computing_fraction` is the share of the block in which the thread that trains had a core; None where that thread
    also waits for more than other threads of its process (a card, other ranks, a loader's workers), or spins meanwhile.
    `collecting_fraction` is the share in which Python collected garbage, which `step_seconds` leaves out.
    """

    batch_size: int
    step_seconds: float
    first_step: int
    steps: int
    others_cores: float | None = None
    micro_batches: int = 1
    was_held: bool = True
    computing_fraction: float | None = None
    collecting_fraction: float | None = None

    @property
    def samples_per_second(self) -> float:
        return self.batch_size * self.micro_batches / self.step_seconds


Speeds = dict[int, float]
"""The logarithm of the samples a second by batch size, in one round."""


@dataclass(frozen=True, slots=True)
class SpeedRound:
    """One block of each remaining size, in the order in which they were run. `seconds` is all the time it took.

    `left_out` is the size whose block could not be run. That ended the round, which is not counted, and the next round
    was decided without that size.
    """

    stage: Stage
    seconds: float
    blocks: tuple[SpeedBlock, ...]
    left_out: int | None = None

    def speeds(self) -> Speeds:
        return {b.batch_size: math.log(b.samples_per_second) for b in sorted(self.blocks, key=lambda b: b.batch_size)}

    def computing_speeds(self) -> Speeds:
        """Return the speeds by the time for which each training had a core, where that is known."""
        shares = ((b, b.computing_fraction) for b in self.blocks)
        return {b.batch_size: math.log(b.samples_per_second / share) for b, share in shares if share}

    @property
    def others_cores(self) -> float | None:
        """Return how many cores other work used, on average over the round; None where unknown."""
        known = [b.others_cores for b in self.blocks if b.others_cores is not None]
        return fmean(known) if known else None
