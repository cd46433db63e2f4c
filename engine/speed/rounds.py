"""PURE: the data of a comparison of speeds: its candidates, and the rounds in which blocks of them are timed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Protocol

from ..results.intervals import ENOUGH_ROUNDS
from ..results.speed_rounds import SpeedBlock, SpeedRound, Stage

BUSY_FRACTION = 0.05  # a round is disturbed where other work used more than this share of the machine's cores
BUSY_STARTS_FRACTION = 0.15
"""Share of the cores that others may use on average over all starts: beyond it, starts on a CPU tell nothing."""
OF_STARTS = "starts of "
"""The first words of a comparison's method where each speed is of a start of its own."""


class Timing(Protocol):
    """How speeds were compared, and what other programs did meanwhile."""

    @property
    def method(self) -> str | None: ...
    @property
    def rounds(self) -> int: ...
    @property
    def quiet_rounds(self) -> int: ...
    @property
    def others_cores(self) -> float | None: ...
    @property
    def cores(self) -> int | None: ...


def describe_disturbance(timing: Timing) -> str | None:
    """Write what other programs did where the rule of the comparison counts its timing as disturbed; None elsewhere.

    Rounds of one process are judged each by itself, starts of a script by the cores that others used on average.
    """
    if (timing.method or "").startswith(OF_STARTS):
        return describe_busy_starts(timing.others_cores, timing.cores)
    return describe_busy_rounds(timing.rounds, timing.quiet_rounds)


def describe_notable_others(timing: Timing) -> str | None:
    """Write "other programs used 0.2 of 2 cores", whether or not that disturbed it; None where they used hardly any."""
    if not timing.cores or (timing.others_cores or 0.0) <= BUSY_FRACTION * timing.cores:
        return None
    return describe_others(timing.others_cores or 0.0, timing.cores)


def describe_others(others_cores: float, cores: int) -> str:
    """Write "other programs used 1.6 of 2 cores"."""
    return f"other programs used {others_cores:.1f} of {cores} core{'' if cores == 1 else 's'}"


def describe_load(others_cores: float | None, cores: int, busy_fraction: float = BUSY_FRACTION) -> str | None:
    """Write what a load leaves to be shown by a comparison on shared cores; None where it is quiet, or unknown.

    >>> describe_load(1.31, 2)
    'other programs use 1.3 of 2 cores: which is faster may show, by how much will not'
    """
    if others_cores is None or others_cores <= busy_fraction * cores:
        return None
    return f"other programs use {others_cores:.1f} of {cores} cores: which is faster may show, by how much will not"


def describe_busy_rounds(rounds: int, quiet_rounds: int) -> str | None:
    """Write "other programs ran in 9 of 12 rounds"; None where enough rounds were quiet: only those count then."""
    if quiet_rounds >= min(ENOUGH_ROUNDS, rounds):
        return None
    return f"other programs ran in {f'{rounds - quiet_rounds} of' if quiet_rounds else 'all'} {rounds} rounds"


def describe_busy_starts(others_cores: float | None, cores: int | None) -> str | None:
    """Write "other programs used 1.6 of 2 cores"; None where starts still tell, or it is not known."""
    if others_cores is None or not cores or others_cores <= BUSY_STARTS_FRACTION * cores:
        return None
    return describe_others(others_cores, cores)


Speeds = dict[int, float]
"""The logarithm of the samples a second by batch size, in one round."""


@dataclass(frozen=True, slots=True)
class Block:
    """Steps of one size, run one after the other. `others_cores` is what other work used meanwhile; None: unknown.

    `first_step` counts the steps of that size that were timed before.
    """

    batch_size: int
    step_seconds: tuple[float, ...]
    others_cores: float | None = None
    micro_batches: int = 1
    first_step: int = 0

    @property
    def samples_per_second(self) -> float:
        return self.batch_size * self.micro_batches / median(self.step_seconds)


@dataclass(frozen=True, slots=True)
class Round:
    """One block of each size. `seconds` is all the time it took, `left_out` the size that could not be run in it."""

    stage: Stage
    blocks: tuple[Block, ...]
    seconds: float
    left_out: int | None = None

    def speeds(self) -> Speeds:
        """Return the logarithm of the samples a second of each size."""
        return {b.batch_size: math.log(b.samples_per_second) for b in sorted(self.blocks, key=lambda b: b.batch_size)}

    @property
    def others_cores(self) -> float | None:
        """Return how many cores other work used, on average over the round; None where unknown."""
        known = [b.others_cores for b in self.blocks if b.others_cores is not None]
        return fmean(known) if known else None

    def is_disturbed(self, cores: int) -> bool:
        return (self.others_cores or 0.0) > BUSY_FRACTION * cores

    def stored(self) -> SpeedRound:
        blocks = (
            SpeedBlock(
                b.batch_size, median(b.step_seconds), b.first_step, len(b.step_seconds), b.others_cores, b.micro_batches
            )
            for b in self.blocks
        )
        return SpeedRound(self.stage, self.seconds, tuple(blocks), self.left_out)

    @classmethod
    def from_stored(cls, stored: SpeedRound) -> Round:
        """Rebuild a round of a result. Its blocks have one step, the median, which is all that decisions use."""
        blocks = (Block(b.batch_size, (b.step_seconds,), b.others_cores, b.micro_batches) for b in stored.blocks)
        return cls(stored.stage, tuple(blocks), stored.seconds, stored.left_out)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is to be compared: all sizes, today's (if it trains here), and those that keep the reserve.

    `shares_cores`: the training runs on the cores that other work uses, as on a CPU.
    """

    sizes: tuple[int, ...]
    current: int | None
    with_reserve: frozenset[int]
    cores: int = 1
    shares_cores: bool = False

    def without(self, size: int) -> Candidates:
        """Return what is left to compare where a size cannot be timed together with the others."""
        sizes = tuple(s for s in self.sizes if s != size)
        keeping = self.with_reserve - {size}
        current = None if self.current == size else self.current
        return replace(self, sizes=sizes, current=current, with_reserve=keeping or frozenset(sizes[:1]))


@dataclass(frozen=True, slots=True)
class RunRound:
    """Run a round of these sizes next."""

    stage: Stage
    sizes: tuple[int, ...]
