"""PURE: what a run still has to do, and how long that may take by the seconds of its own probes.

Nothing is claimed where it cannot be known: before two probes have ended, and while a search has neither an estimate
nor a refused size to aim at. A range is what is expected, not a bound: a search that is led astray takes longer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .result import Outcome, Probe, Purpose
from .search.guided import AIMS
from .search.unguided import curve_sizes
from .spec import MEMORY_STEPS
from .speed.comparison import APART
from .speed.selection import BLOCK_SECONDS, EVALUATION_ROUNDS, EXTRA_SECONDS, SELECTION_ROUNDS
from .speed_rounds import Stage

SOAK_STEPS, SOAK_STEPS_CPU = 20, 5
EDGE_PROBES = 2  # to find the largest size that keeps the reserve
PROBES_NEEDED = 2
PLAIN_SHARE = 0.5  # of a step that is measured: what the same step takes at least when nothing watches it
NEAR_SHARE = 0.9  # of the estimate: a size so near that fitted shows that the estimate is about right
EVALUATED_MOST = 3  # today's size, the recommended and the fastest

_SEARCHED = (Purpose.SEARCH, Purpose.CONFIRM)
_LATER = ("soaking", "curve", "timing", "explaining")


@dataclass(frozen=True, slots=True)
class SecondsLeft:
    """How long the run is expected to go on, at least and at most."""

    least: float
    most: float

    def __add__(self, other: SecondsLeft) -> SecondsLeft:
        return SecondsLeft(self.least + other.least, self.most + other.most)


@dataclass(frozen=True, slots=True)
class SoFar:
    """A run under way: its phase, its probes, and what is known of what comes.

    `expected` is the largest size of the estimate. `open_seconds` is what a new process with the model takes, 0 where
    it is unknown. `timing_seconds_left` is the engine's own bound, once it compares speeds.
    """

    phase: str
    probes: Sequence[Probe]
    current_batch_size: int
    soak_steps: int
    expected: int | None = None
    open_seconds: float = 0.0
    timing_seconds_left: float | None = None


def seconds_left(so_far: SoFar) -> SecondsLeft | None:
    """Return how long the run may still take; None where its own probes do not show it."""
    if so_far.phase == "timing" and so_far.timing_seconds_left is not None:
        return SecondsLeft(0.0, so_far.timing_seconds_left)
    steps = _StepSeconds.of(so_far.probes)
    if len(so_far.probes) < PROBES_NEEDED or steps is None or so_far.phase not in ("searching", *_LATER):
        return None
    aim = _aim(so_far.probes, so_far.expected, is_searching=so_far.phase == "searching")
    if aim is None:
        return None
    begin = 0 if so_far.phase == "searching" else _LATER.index(so_far.phase)
    parts = [_later_part(name, so_far, aim, steps) for name in _LATER[begin:]]
    search = _search_left(aim, so_far, steps) if so_far.phase == "searching" else SecondsLeft(0.0, 0.0)
    return sum(parts, start=search)


def share_of_phase(so_far: SoFar) -> float:
    """Return which share of the current phase is done, by the probes it still expects; 0 where that is unknown."""
    if so_far.phase == "searching":
        aim = _aim(so_far.probes, so_far.expected, is_searching=True)
        done = sum(p.purpose in _SEARCHED for p in so_far.probes)
        return done / (done + aim.probes_most) if aim and done else 0.0
    if so_far.phase == "curve" and (largest := _largest(so_far.probes)):
        done = sum(p.purpose is Purpose.CURVE for p in so_far.probes)
        expected = done + len(_curve_left(so_far, largest)) + EDGE_PROBES
        return done / expected
    return 0.0


@dataclass(frozen=True, slots=True)
class _Aim:
    """Where the boundary is expected, and with how many more probes the search finds it."""

    low: int
    high: int
    probes_least: int
    probes_most: int


@dataclass(frozen=True, slots=True)
class _StepSeconds:
    """The seconds of a measured step by batch size."""

    known: tuple[tuple[int, float], ...]

    @classmethod
    def of(cls, probes: Iterable[Probe]) -> _StepSeconds | None:
        """Read them off the probes that trained; None where none did."""
        known = {p.batch_size: p.wall_seconds / p.steps for p in probes if p.fits and p.steps and p.wall_seconds}
        return cls(tuple(sorted(known.items()))) if known else None

    def at(self, size: int) -> float:
        """Go straight from one known size to the next, and beyond the largest in proportion to the size."""
        (low, low_seconds), *_ = self.known
        for high, high_seconds in self.known:
            if size <= high:
                share = (size - low) / (high - low) if low < size else 0.0
                return low_seconds + share * (high_seconds - low_seconds)
            low, low_seconds = high, high_seconds
        return low_seconds * size / low


def _largest(probes: Iterable[Probe]) -> int:
    return max((p.batch_size for p in probes if p.fits), default=0)


def _aim(probes: Sequence[Probe], expected: int | None, *, is_searching: bool) -> _Aim | None:
    """Return where the search is heading; None while that is unknown."""
    low = _largest(probes)
    if not is_searching:
        return _Aim(low, low, 0, 0) if low else None
    refused = min((p.batch_size for p in probes if p.outcome is not Outcome.FITS and p.batch_size > low), default=None)
    if refused is not None:
        halvings = math.ceil(math.log2(refused - low)) if refused > low + 1 else 0
        return _Aim(max(low, 1), max(refused - 1, 1), min(halvings, 1), halvings + 1)
    if expected is None or expected < low:
        return None
    probes_least = 1 if expected == low else 2
    has_come_near = low >= NEAR_SHARE * expected
    return _Aim(expected, expected, probes_least, probes_least + (1 if has_come_near else AIMS))


def _search_left(aim: _Aim, so_far: SoFar, steps: _StepSeconds) -> SecondsLeft:
    """Return the seconds of the search. Its last probe is refused, at best in its first step."""
    at_least = steps.at(aim.low) * (MEMORY_STEPS * (aim.probes_least - 1) + 1) if aim.probes_least else 0.0
    at_most = aim.probes_most * (MEMORY_STEPS * steps.at(aim.high) + so_far.open_seconds)
    return SecondsLeft(at_least, at_most)


def _later_part(phase: str, so_far: SoFar, aim: _Aim, steps: _StepSeconds) -> SecondsLeft:
    sizes = {p.batch_size for p in so_far.probes if p.fits}
    if phase == "soaking":
        return SecondsLeft(
            so_far.soak_steps * steps.at(aim.low), so_far.soak_steps * steps.at(aim.high) + so_far.open_seconds
        )
    left = _curve_left(so_far, aim.high)
    if phase == "curve":
        planned = MEMORY_STEPS * sum(map(steps.at, left))
        return SecondsLeft(planned, planned + EDGE_PROBES * MEMORY_STEPS * steps.at(aim.high))
    if phase == "timing":
        return _timing_left(_apart({*sizes, *left, aim.high}), steps) + SecondsLeft(0.0, so_far.open_seconds)
    return SecondsLeft(0.0, MEMORY_STEPS * steps.at(aim.high) + so_far.open_seconds)


def _curve_left(so_far: SoFar, largest: int) -> list[int]:
    """Return the sizes below the boundary that are still to be measured, as far as they are known before."""
    fitted = {p.batch_size for p in so_far.probes if p.fits}
    searched = sorted(p.batch_size for p in so_far.probes if p.fits and p.purpose in _SEARCHED)
    wanted = {*curve_sizes(searched, largest), *([so_far.current_batch_size] * (so_far.current_batch_size <= largest))}
    return sorted(wanted - fitted)


def _apart(sizes: Iterable[int]) -> list[int]:
    """Keep the largest size and those that lie well below the next one kept."""
    kept: list[int] = []
    for size in sorted(sizes, reverse=True):
        if not kept or kept[-1] >= APART * size:
            kept.append(size)
    return kept


def _timing_left(sizes: Sequence[int], steps: _StepSeconds) -> SecondsLeft:
    """Return the seconds of the comparison.

    At best the slower sizes drop out after one round; at most all stay, and other work costs the extra time.
    """
    quick, quick_pair = (_blocks(stage, sizes, steps, PLAIN_SHARE) for stage in Stage)
    slow, slow_pair = (_blocks(stage, sizes, steps, 1.0) for stage in Stage)
    least = sum(quick) + (SELECTION_ROUNDS - 1) * quick[-1] + EVALUATION_ROUNDS * quick_pair[-1]
    most = SELECTION_ROUNDS * sum(slow) + EVALUATION_ROUNDS * sum(slow_pair[:EVALUATED_MOST]) + EXTRA_SECONDS
    return SecondsLeft(least, most)


def _blocks(stage: Stage, sizes: Sequence[int], steps: _StepSeconds, share: float) -> list[float]:
    """Return the seconds of a block of each size, the longest first: a step to warm up, then at least one step."""
    step_seconds = [share * steps.at(size) for size in sizes]
    return sorted((each + max(BLOCK_SECONDS[stage], each) for each in step_seconds), reverse=True)
