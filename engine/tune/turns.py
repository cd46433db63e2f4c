"""How many times as fast one batch size is as another, by starts of both in turns. Pure, but for the starts.

The speeds of two starts alone say little: each process has its memory elsewhere, and the machine may have done other
work. So starts of the two sizes alternate, A B B A A B B A, and each is compared with the one beside it. What differs
from process to process, and what changes slowly, then lies in the spread of these pairs: their interval is reported as
it is. It is the interval, and the limit to what is claimed, of every comparison of speeds (`engine.speed`).
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean, median

from ..errors import CommandUntunable, TimeIsUp
from ..intervals import ENOUGH_ROUNDS, Interval, interval
from ..result import Outcome, Probe, Purpose
from ..speed.comparison import Comparison
from ..speed.selection import CLAIMABLE_HALF_WIDTH, RECOMMENDED_WITHIN, interval_of_rounds
from ..speed_rounds import SpeedBlock, SpeedRound, Stage

MOST_PAIRS = 12
METHOD = (
    "starts of both sizes in turns (A B B A), each a fresh process; signed-rank interval of the ratios of the pairs"
)

TIMED_SECONDS, TIMED_STEPS = 2.0, (6, 500)  # of each start: long enough, and neither too few nor too many


@dataclass(frozen=True, slots=True)
class Turns:
    """Two sizes that were compared, today's first, and the samples a second of each pair of starts.

    `ratio` is how many times as fast the second size is; None where too few pairs were timed.
    """

    batch_sizes: tuple[int, int]
    pairs: tuple[tuple[float, float], ...]
    ratio: Interval | None

    @property
    def is_claimable(self) -> bool:
        """Whether the interval is narrow enough to claim its figure."""
        return self.ratio is not None and math.log(self.ratio.spread) <= 2 * CLAIMABLE_HALF_WIDTH


@dataclass
class InTurns:
    """A comparison in progress. `start` starts a size to time it; it raises TimeIsUp and CommandUntunable."""

    start: Callable[[int], Probe]
    say: Callable[..., None]
    seconds_left: Callable[[], float]
    timed: list[Probe] = field(default_factory=list)
    turns: Turns | None = None

    def compare(self, today: int, other: int, *, may_keep_today: bool) -> Comparison:
        """Time pairs of starts until the interval is narrow enough; the verdict."""
        began, longest, ended, pairs = time.monotonic(), 0.0, None, list[tuple[float, float]]()
        self.turns = turns_of(today, other, pairs)
        try:
            while not _is_enough(self.turns):
                if self.seconds_left() < longest:
                    raise TimeIsUp
                spent = time.monotonic() - began
                self._say_pair(len(pairs) + 1, spent, longest * (MOST_PAIRS - len(pairs)))
                pairs.append(self._pair(today, other, today_first=len(pairs) % 2 == 0))
                longest = max(longest, time.monotonic() - began - spent)
                self.turns = turns_of(today, other, pairs)
                speeds = (f"{size} with {speed:.1f}" for size, speed in zip((today, other), pairs[-1], strict=True))
                self.say("log", level="info", message=f"pair {len(pairs)}: {', '.join(speeds)} samples/s")
        except TimeIsUp:
            ended = f"the time budget ended after {len(pairs)} of at least {ENOUGH_ROUNDS} pairs of starts"
        except CommandUntunable as error:
            ended = f"a start could not be timed: {error}"
        found = comparison_of(self.turns, ended, may_keep_today=may_keep_today, seconds=time.monotonic() - began)
        return replace(found, speed_rounds=tuple(self._rounds(len(pairs))))

    def probes(self, found: Comparison) -> list[Probe]:
        """Return one for each size that was timed, with the step times of all of its starts.

        Its speed is that of the comparison; without a verdict the mean of its steps stands, for what it is worth.
        """
        timed = [p for p in self.timed if p.timed_step_seconds and p.samples_per_second is not None]
        by_size = {n: [p for p in timed if p.batch_size == n] for n in dict.fromkeys(p.batch_size for p in timed)}
        return [_timing(found.speeds.get(n), starts) for n, starts in by_size.items()]

    def _rounds(self, pairs: int) -> Iterator[SpeedRound]:
        """Yield each pair of starts as the round of the comparison that it is."""
        timed_steps = Counter[int]()
        for pair in zip(self.timed[: 2 * pairs : 2], self.timed[1 : 2 * pairs : 2], strict=True):
            blocks = []
            for p in pair:
                steps = len(p.timed_step_seconds)
                micro_batches = round(_samples_of_a_step(p) / p.batch_size)
                first_step, middle = timed_steps[p.batch_size], median(p.timed_step_seconds)
                blocks.append(SpeedBlock(p.batch_size, middle, first_step, steps, micro_batches=micro_batches))
                timed_steps[p.batch_size] += steps
            yield SpeedRound(Stage.EVALUATION, sum(p.wall_seconds for p in pair), tuple(blocks))

    def _pair(self, today: int, other: int, *, today_first: bool) -> tuple[float, float]:
        speeds = {size: self._speed(size) for size in ((today, other) if today_first else (other, today))}
        return speeds[today], speeds[other]

    def _speed(self, batch_size: int) -> float:
        probe = self.start(batch_size)
        self.timed.append(probe)
        if not probe.fits or probe.samples_per_second is None:
            why = probe.error_message or "its data ended too early"
            raise CommandUntunable("not_timed", f"batch {batch_size} gave no speed: {why}")
        return mean_speed(probe)

    def _say_pair(self, number: int, spent: float, left_at_most: float) -> None:
        assert self.turns is not None
        sizes = {"stage": "evaluation", "round": number, "batch_sizes": list(self.turns.batch_sizes)}
        left = round(min(left_at_most, self.seconds_left()), 1)
        self.say("timing", **sizes, seconds_spent=round(spent, 1), seconds_left_at_most=left)


def mean_speed(probe: Probe) -> float:
    """Return the samples a second over all timed steps: where data comes in bursts, the median step is too short."""
    return _samples_of_a_step(probe) / fmean(probe.timed_step_seconds)


def _samples_of_a_step(probe: Probe) -> float:
    """Return the samples of all ranks and micro-batches."""
    return (probe.samples_per_second or 0.0) * (probe.step_seconds or 0.0)


def steps_to_time(step_seconds: float | None) -> int:
    """Return how many steps of such a length to time in each start."""
    least, most = TIMED_STEPS
    return min(max(least, round(TIMED_SECONDS / step_seconds)), most) if step_seconds else least


def turns_of(today: int, other: int, pairs: Sequence[tuple[float, float]]) -> Turns:
    """Return what the pairs show: of at least six."""
    is_enough = len(pairs) >= ENOUGH_ROUNDS
    ratio = interval_of_rounds([math.log(b / a) for a, b in pairs]).exp() if is_enough else None
    return Turns((today, other), tuple(pairs), ratio)


def comparison_of(turns: Turns, ended: str | None, *, may_keep_today: bool, seconds: float) -> Comparison:
    """Return the verdict. `may_keep_today`: today's size is the smaller one and keeps the reserve.

    Then it is recommended where the other is not more than 3 % faster at any end of the interval; in all other cases
    the size stays that was chosen by memory. Two sizes do not tell which one is the fastest of all.
    """
    today, other = turns.batch_sizes
    facts = partial(Comparison, rounds=len(turns.pairs), seconds=seconds, method=METHOD)
    if turns.ratio is None:
        return facts(is_measurable=False, reason=f"speed not measured: {ended}")
    if not turns.is_claimable:
        between = f"between {turns.ratio.low:.2g}x and {turns.ratio.high:.2g}x as fast as {today}"
        return facts(is_measurable=False, reason=f"speed not measurable here now: {other} is {between}")
    is_kept = may_keep_today and turns.ratio.high * (1 - RECOMMENDED_WITHIN) <= 1
    return facts(
        is_measurable=True,
        recommended=today if is_kept else None,
        speedup=Interval(1.0, 1.0, 1.0) if is_kept else turns.ratio,
        speeds=_speeds(turns),
    )


def _is_enough(turns: Turns) -> bool:
    """Return whether to stop: only after an even number of pairs, when each size was the first one equally often."""
    count = len(turns.pairs)
    return count >= MOST_PAIRS or (count % 2 == 0 and turns.is_claimable)


def _speeds(turns: Turns) -> dict[int, Interval]:
    """Return the samples a second of both. Their ratio is that of the pairs."""
    today, other = turns.batch_sizes
    assert turns.ratio is not None
    own, others = (interval([math.log(speed) for speed in each]).exp() for each in zip(*turns.pairs, strict=True))
    value = own.value * turns.ratio.value
    return {today: own, other: Interval(min(others.low, value), value, max(others.high, value))}


def _timing(speed: Interval | None, starts: Sequence[Probe]) -> Probe:
    """Return the probe of a size that was timed by several starts."""
    first, steps = starts[0], tuple(s for p in starts for s in p.timed_step_seconds)
    samples_per_second = speed.value if speed else _samples_of_a_step(first) / fmean(steps)
    return Probe(
        first.batch_size,
        Outcome.FITS,
        Purpose.TIMING,
        fresh_process=True,
        step_seconds=_samples_of_a_step(first) / samples_per_second,
        timed_step_seconds=steps,
        samples_per_second=samples_per_second,
        wall_seconds=sum(p.wall_seconds for p in starts),
    )
