"""PURE: the data of a comparison of speeds: its candidates, and what other programs did meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic

from ...facts.intervals import ENOUGH_ROUNDS
from ...facts.speed_rounds import SpeedRound, Stage
from .ratios import E, Round

RUN_TO_RUN = 0.035
"""The standard deviation between runs on an idle machine, of the logarithm of a speed and of a ratio of two, beyond
what the rounds of one process show: memory lies elsewhere, clocks settle otherwise. Measured by
`benchmarks/speed_under_load.py` on two cores of a virtual machine; no card was measured yet."""
RUN_TO_RUN_OF_STARTS = 0.1
"""The same of a ratio of two starts of a script on a CPU: 18 runs of the README's script, which gets its memory anew in
each step, said 6.4x to 9.4x, six pairs of 200 steps of the demo 8.8x to 12.9x."""
EXTRA_SECONDS = 60.0  # for blocks of one process
BUSY_FRACTION = 0.05  # a round is disturbed where other work used more than this share of the machine's cores
BUSY_STARTS_FRACTION = 0.15
"""The same for rounds of starts, beside which others' work is measured less closely."""


def describe_notable_others(others_cores: float | None, cores: int | None) -> str | None:
    """Write "other programs used 0.2 of 2 cores", also where nothing was disturbed; None where they used hardly any."""
    used = others_cores or 0.0
    if not cores or used <= BUSY_FRACTION * cores:
        return None
    return f"other programs used {used:.1f} of {cores} core{'' if cores == 1 else 's'}"


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


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is to be compared: the sizes, today's (if it trains here), and those of them that keep the reserve.

    `shares_cores`: a round is disturbed where other work used more than `busy_fraction` of the cores. `by_start` are
    samples a second measured before, one round together. `run_to_run`: the deviation that one process does not show.
    """

    sizes: tuple[int, ...]
    current: int | None
    with_reserve: frozenset[int]
    cores: int = 1
    shares_cores: bool = False
    busy_fraction: float = BUSY_FRACTION
    by_start: Mapping[int, float] = field(default_factory=dict)
    extra_seconds: float = EXTRA_SECONDS
    run_to_run: float = RUN_TO_RUN

    def read(self, each: SpeedRound) -> Round[int]:
        busy = {b.batch_size for b in each.blocks if (b.others_cores or 0.0) > self.busy_fraction * self.cores}
        held = frozenset(b.batch_size for b in each.blocks if b.was_held)
        return Round(each.speeds(), each.computing_speeds(), frozenset(busy), held, each.seconds)

    def without(self, size: int) -> Candidates:
        """Return what is left to compare where a size cannot be timed together with the others."""
        sizes = tuple(s for s in self.sizes if s != size)
        keeping = self.with_reserve - {size}
        current = None if self.current == size else self.current
        return replace(self, sizes=sizes, current=current, with_reserve=keeping or frozenset(sizes[:1]))


@dataclass(frozen=True, slots=True)
class NextRound(Generic[E]):
    """Time one block or start of each of these entries next, in random order."""

    stage: Stage
    generation: int
    entries: tuple[E, ...]
