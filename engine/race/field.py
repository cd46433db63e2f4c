"""PURE: the data of a race: entries and timed units. A timed unit is a block of steps, or a whole start."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from ..facts.intervals import Interval
from ..facts.speed_rounds import SpeedClaim, Stage
from .speed.claim import CLEARLY_FASTER
from .speed.ratios import Round, mean_shares
from .speed.rounds import BUSY_FRACTION, RUN_TO_RUN, RUN_TO_RUN_OF_STARTS

Entry = tuple[str, ...]
"""The changes that are made together, in the order of the field; the empty one is the training of today."""
TODAY: Entry = ()


@dataclass(frozen=True, slots=True)
class Field:
    """What takes part: today's training, each of the `changes` alone, and combinations of those that gain.

    `conflicts` exclude each other. `shares_cores`: other work uses the cores; nothing is claimed from disturbed rounds.
    """

    changes: tuple[str, ...]
    conflicts: frozenset[frozenset[str]] = frozenset()
    most_seconds: float = math.inf
    cores: int = 1
    shares_cores: bool = False

    @property
    def run_to_run(self) -> float:
        """The standard deviation of a ratio between starts, which blocks of starts that are held do not show."""
        return RUN_TO_RUN_OF_STARTS if self.shares_cores else RUN_TO_RUN

    def read(self, rounds: Iterable[RacedRound]) -> list[Round[Entry]]:
        """Read the rounds in which nothing failed."""
        counted = [each for each in rounds if each.failed is None]
        collected = mean_shares((one.entry, one.collecting_fraction) for each in counted for one in each.timed)
        return [each.read(self.cores, collected) for each in counted]

    def entry(self, changes: Iterable[str]) -> Entry | None:
        wanted = frozenset(changes)
        if any(pair <= wanted for pair in self.conflicts):
            return None
        return tuple(change for change in self.changes if change in wanted)


@dataclass(frozen=True, slots=True)
class Timed:
    """One block or start of an entry. `others_cores` is what other work used meanwhile; None where unknown.

    `seconds` is how long it took, where entries differ in that, as one does that compiles. `was_held`: it is a further
    block of a start that timed one before. Both fractions are as those of a `SpeedBlock`.
    """

    entry: Entry
    samples_per_second: float
    others_cores: float | None = None
    seconds: float | None = None
    was_held: bool = False
    computing_fraction: float | None = None
    collecting_fraction: float | None = None


@dataclass(frozen=True, slots=True)
class RacedRound:
    """One block or start of each entry that was left, in the order in which they ran. `seconds` is all it took.

    `failed` is the entry that could not be run. The others of its round do not count, and the race goes on without it.
    """

    stage: Stage
    generation: int
    timed: tuple[Timed, ...]
    seconds: float
    failed: Entry | None = None

    def read(self, cores: int, collected: Mapping[Entry, float]) -> Round[Entry]:
        speeds = {each.entry: each.samples_per_second * (1 - collected[each.entry]) for each in self.timed}
        shares = ((each.entry, each.computing_fraction) for each in self.timed)
        return Round(
            {entry: math.log(speed) for entry, speed in speeds.items()},
            {entry: math.log(speeds[entry] / share) for entry, share in shares if share},
            frozenset(each.entry for each in self.timed if (each.others_cores or 0.0) > BUSY_FRACTION * cores),
            frozenset(each.entry for each in self.timed if each.was_held),
            self.seconds,
        )


@dataclass(frozen=True, slots=True)
class RaceVerdict:
    """What the race found. `leader` came first, and `gain` is how many times as fast it is as today's.

    `gain` is from the evaluation alone, and `claim` says what of it may be said. `chosen` is what is recommended: the
    leader, or today's training where nothing is shown to gain. `ended_early`: the time was spent before the rounds said
    more. `rounds` are those of the evaluation, or where nothing led and that stays open, those that chose; of them
    `quiet_rounds` are those that no other work disturbed. `gain` is None also where only the order is claimed.
    A gain below `least_gain` may have been overlooked where none is claimed.
    """

    chosen: Entry
    leader: Entry
    claim: SpeedClaim
    gain: Interval | None
    rounds: int
    quiet_rounds: int
    ended_early: bool = False
    least_gain: float = CLEARLY_FASTER

    @property
    def is_found(self) -> bool:
        return self.chosen != TODAY


NOTHING_TIMED = RaceVerdict(TODAY, TODAY, SpeedClaim.NOTHING, None, 0, 0, ended_early=True)


def mean_others_cores(rounds: Iterable[RacedRound]) -> float | None:
    """Return how many cores other work used while blocks were timed; None where that is unknown."""
    known = [each.others_cores for r in rounds for each in r.timed if each.others_cores is not None]
    return fmean(known) if known else None
