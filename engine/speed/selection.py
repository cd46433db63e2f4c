"""PURE: which batch sizes to time next, and the verdict of the comparison.

`decide` takes all rounds so far and returns the sizes of the next one, or the verdict. It has no state.

A round runs one block of steps of each of its sizes, in random order, so that whatever the machine does besides hits
all of them alike: only ratios within a round are compared. Two stages keep the choice from flattering itself:

1. *Selection* over all candidates. Sizes that are clearly slower drop out round by round. It ends with the recommended
   size, the smallest that is shown to be within 3 % of every other one that keeps the reserve, and with the fastest,
   the smallest whose throughput cannot be distinguished from the highest.
2. *Evaluation* of today's size, the recommended and the fastest, with new rounds alone. A size that won the selection
   by luck has none left here. Its intervals are the ones that are reported.

Rounds of one process know nothing of the next one. So what is reported is wider than what they show, by `RUN_TO_RUN`.

A machine that is left alone needs the minimum of rounds. Beside other work further rounds are run, at most
`EXTRA_SECONDS`; if the interval is too wide even then, the speed is not measurable here now, and nothing is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, quantiles

from ..intervals import ENOUGH_ROUNDS, Interval, interval
from ..speed_rounds import SpeedBlock, SpeedRound, Stage
from ..stats import NOISE_FRACTION

RECOMMENDED_WITHIN = NOISE_FRACTION  # of the fastest: a smaller batch is worth that much
BLOCK_SECONDS = {Stage.SELECTION: 0.2, Stage.EVALUATION: 0.4}
SELECTION_ROUNDS = 3
EVALUATION_ROUNDS = ENOUGH_ROUNDS
HALF_WIDTH = NOISE_FRACTION  # of a ratio: narrow enough
FINE_HALF_WIDTH = 0.02  # a size that is known so well and still lies across the 3 % is not worth more rounds
MEASURABLE_SPREAD = 1.10  # upper end over lower end of a ratio; beyond that nothing is claimed
CLAIMABLE_HALF_WIDTH = math.log(MEASURABLE_SPREAD) / 2
AGREEING_SPREAD = 1.25  # of the middle half of the rounds; beyond that they contradict each other
SELECTION_EXTRA_SECONDS = 25.0
EXTRA_SECONDS = 60.0  # of both stages, beyond their fewest rounds
PATIENT_SECONDS = 15.0  # of it to know a ratio to HALF_WIDTH; after that, what can be claimed is enough
QUIET_EXTRA_SECONDS = 20.0  # of it at most to wait for rounds without other work
BUSY_FRACTION = 0.05  # of the machine's cores used by others: the round was disturbed

RUN_TO_RUN = 0.035
"""The standard deviation of the logarithm of a speed, and of a ratio of two, from one run to the next on a machine that
is left alone, beyond what the rounds of one process show: memory lies elsewhere, clocks settle otherwise. Measured by
`benchmarks/speed_under_load.py` on two cores of a virtual machine; no card was measured yet."""

LOOK_EVERY = 3  # rounds: each look at the interval is a chance to stop by accident

Speeds = dict[int, float]
"""Of one round: the logarithm of the samples a second, by batch size."""

_TOLERANCE = -math.log1p(-RECOMMENDED_WITHIN)
_SLACK = (math.log(4), math.log(1.6), math.log(1.15))  # after one, two and three rounds: only the clearly slower go


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
    """One block of each size. `seconds` is all the time it took."""

    stage: Stage
    blocks: tuple[Block, ...]
    seconds: float

    def speeds(self) -> Speeds:
        """Return the logarithm of the samples a second of each size."""
        return {b.batch_size: math.log(b.samples_per_second) for b in sorted(self.blocks, key=lambda b: b.batch_size)}

    @property
    def others_cores(self) -> float | None:
        """How many cores other work used, on average over the round; None where unknown."""
        known = [b.others_cores for b in self.blocks if b.others_cores is not None]
        return fmean(known) if known else None

    def is_disturbed(self, cores: int) -> bool:
        return (self.others_cores or 0.0) > BUSY_FRACTION * cores

    def stored(self) -> SpeedRound:
        """Return it as a result holds it."""
        blocks = (
            SpeedBlock(
                b.batch_size, median(b.step_seconds), b.first_step, len(b.step_seconds), b.others_cores, b.micro_batches
            )
            for b in self.blocks
        )
        return SpeedRound(self.stage, self.seconds, tuple(blocks))

    @classmethod
    def from_stored(cls, stored: SpeedRound) -> Round:
        """Rebuild a round of a result. Its blocks have one step, the median: nothing else of them is ever used."""
        blocks = (Block(b.batch_size, (b.step_seconds,), b.others_cores, b.micro_batches) for b in stored.blocks)
        return cls(stored.stage, tuple(blocks), stored.seconds)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is to be compared: all sizes, today's (if it trains here), and those that keep the reserve."""

    sizes: tuple[int, ...]
    current: int | None
    with_reserve: frozenset[int]
    cores: int = 1

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


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on the speeds.

    `speeds` are samples a second of the evaluated sizes, `rough` of the others, from the few rounds they were in
    beside the recommended one.

    `compared` is the comparison that decided: the widest of those needed, how many times as fast the recommended size
    is as the other. `speedup` is None where today's size was not compared. Where `is_measurable` is false no size is
    to be named by speed.
    """

    is_measurable: bool
    recommended: int
    fastest: int
    speedup: Interval | None
    speeds: dict[int, Interval]
    rough: dict[int, float]
    compared: tuple[int, Interval] | None
    rounds: int
    quiet_rounds: int


def decide(candidates: Candidates, rounds: Sequence[Round]) -> RunRound | Verdict:
    """Decide on the next round, or on the verdict. `rounds` are all of this comparison, in their order."""
    selection = [r for r in rounds if r.stage is Stage.SELECTION]
    evaluation = [r for r in rounds if r.stage is Stage.EVALUATION]
    speeds = [r.speeds() for r in selection]
    remaining = _remaining(candidates, speeds)
    extra = _extra_seconds(selection, SELECTION_ROUNDS)
    choice = _choice(candidates, remaining, speeds, is_out_of_time=extra > SELECTION_EXTRA_SECONDS)
    if choice is None:
        return RunRound(Stage.SELECTION, tuple(remaining))
    # where a size could not be run, an earlier choice may have been another one
    evaluation = [r for r in evaluation if set(choice.evaluated) <= r.speeds().keys()]
    if _is_evaluated(choice, evaluation, candidates.cores, extra):
        return _verdict(choice, speeds, evaluation, candidates.cores)
    return RunRound(Stage.EVALUATION, choice.evaluated)


@dataclass(frozen=True, slots=True)
class _Choice:
    """The sizes that the selection names, and today's."""

    recommended: int
    fastest: int
    current: int | None

    @property
    def evaluated(self) -> tuple[int, ...]:
        return tuple(sorted({self.recommended, self.fastest, self.current or self.recommended}))

    def ratios(self, rounds: Sequence[Speeds]) -> dict[int, Interval]:
        """Return the ratios that the answer rests on: the recommended size against today's and against the fastest."""
        return {s: _compared(self.recommended, s, rounds) for s in self.evaluated if s != self.recommended}


def _remaining(candidates: Candidates, rounds: Sequence[Speeds]) -> list[int]:
    """Return the sizes still in the running: those of the last round, less those it showed to be clearly slower."""
    if not rounds:
        return sorted(candidates.sizes)
    sizes, count = list(rounds[-1]), len(rounds)
    limit = -_TOLERANCE - (_SLACK[count - 1] if count <= len(_SLACK) else 0.0)
    keepers = [s for s in sizes if s in candidates.with_reserve]

    def is_clearly_slower(size: int) -> bool:
        rivals = keepers if size in candidates.with_reserve else sizes
        return any(_ratio(size, rival, rounds).high < limit for rival in rivals)

    return [s for s in sizes if not is_clearly_slower(s)]


def _choice(
    candidates: Candidates, remaining: Sequence[int], rounds: Sequence[Speeds], *, is_out_of_time: bool
) -> _Choice | None:
    """Return what the selection decided; None while it goes on."""
    keepers = [s for s in remaining if s in candidates.with_reserve]
    if len(remaining) == 1:
        return _Choice(keepers[0], keepers[0], candidates.current)
    if len(rounds) < SELECTION_ROUNDS:
        return None
    best = _highest(keepers, rounds)
    shown = next((s for s in keepers if _is_shown_within(s, keepers, rounds)), None)
    undecided = [s for s in keepers if shown is None or s < shown]
    is_settled = all(_ratio(s, best, rounds).half_width <= FINE_HALF_WIDTH for s in undecided)
    if not is_settled and not is_out_of_time:
        return None
    recommended = best if shown is None else shown
    return _Choice(recommended, _fastest(recommended, remaining, rounds), candidates.current)


def _is_shown_within(size: int, rivals: Iterable[int], rounds: Sequence[Speeds]) -> bool:
    return all(_ratio(size, rival, rounds).low >= -_TOLERANCE for rival in rivals)


def _fastest(recommended: int, remaining: Sequence[int], rounds: Sequence[Speeds]) -> int:
    """Return the smallest size, from the recommended one on, not distinguishable from the highest throughput."""
    best = _highest(remaining, rounds)
    return next((s for s in remaining if s >= recommended and _ratio(s, best, rounds).high >= 0), best)


def _highest(sizes: Sequence[int], rounds: Sequence[Speeds]) -> int:
    """Return the size with the highest throughput, each round seen from its own mean; the smaller of equals."""
    means = [fmean(speeds[s] for s in sizes) for speeds in rounds]
    height = {s: median(speeds[s] - mean for speeds, mean in zip(rounds, means, strict=True)) for s in sizes}
    return max(sizes, key=lambda s: (height[s], -s))


def _is_evaluated(choice: _Choice, rounds: Sequence[Round], cores: int, extra_of_selection: float) -> bool:
    """Whether the ratios are known well enough, or the time is up."""
    if len(rounds) < EVALUATION_ROUNDS:
        return False
    extra = _extra_seconds(rounds, EVALUATION_ROUNDS)
    if extra_of_selection + extra + rounds[-1].seconds > EXTRA_SECONDS:
        return True
    quiet = [r for r in rounds if not r.is_disturbed(cores)]
    if len(quiet) < EVALUATION_ROUNDS and extra <= QUIET_EXTRA_SECONDS:
        return False
    if len(rounds) % LOOK_EVERY:
        return False
    half_width = HALF_WIDTH if extra_of_selection + extra <= PATIENT_SECONDS else CLAIMABLE_HALF_WIDTH
    return all(ratio.half_width <= half_width for ratio in choice.ratios(_used(rounds, cores)).values())


def _verdict(choice: _Choice, selection: Sequence[Speeds], rounds: Sequence[Round], cores: int) -> Verdict:
    used = _used(rounds, cores)
    ratios = choice.ratios(used)
    widest = max(ratios.items(), key=lambda item: item[1].half_width, default=None)
    speeds = _samples_per_second(choice, used)
    return Verdict(
        is_measurable=widest is None or widest[1].half_width <= CLAIMABLE_HALF_WIDTH,
        recommended=choice.recommended,
        fastest=choice.fastest,
        speedup=_speedup(choice, used),
        speeds=speeds,
        rough=_rough(choice, speeds[choice.recommended].value, selection),
        compared=None if widest is None else (widest[0], _reported(widest[1])),
        rounds=len(used),
        quiet_rounds=sum(not r.is_disturbed(cores) for r in rounds),
    )


def _speedup(choice: _Choice, rounds: Sequence[Speeds]) -> Interval | None:
    """Return how many times as fast the recommended size is as today's; exactly 1 where both are the same."""
    if choice.current is None:
        return None
    if choice.current == choice.recommended:
        return Interval(1.0, 1.0, 1.0)
    return _reported(_compared(choice.recommended, choice.current, rounds))


def _used(rounds: Sequence[Round], cores: int) -> list[Speeds]:
    """Return the rounds that no other work disturbed, where they are enough; else all."""
    quiet = [r for r in rounds if not r.is_disturbed(cores)]
    return [r.speeds() for r in (quiet if len(quiet) >= EVALUATION_ROUNDS else rounds)]


def _samples_per_second(choice: _Choice, rounds: Sequence[Speeds]) -> dict[int, Interval]:
    """Of each evaluated size. Their ratios to the reference are the ones that were measured side by side."""
    reference = choice.current or choice.recommended
    level = interval([speeds[reference] for speeds in rounds]).value
    found = {}
    for size in choice.evaluated:
        own = interval([speeds[size] for speeds in rounds])
        value = level + _ratio(size, reference, rounds).value
        found[size] = _reported(Interval(min(own.low, value), value, max(own.high, value)))
    return found


def _reported(logarithm: Interval) -> Interval:
    """Return the figure itself, with the interval that holds in another run, too."""
    return logarithm.widened(RUN_TO_RUN).exp()


def _rough(choice: _Choice, reference_speed: float, selection: Sequence[Speeds]) -> dict[int, float]:
    """Return samples a second of what was in the selection alone, by the ratio to the recommended size, in all."""
    found = {}
    for size in {s for speeds in selection for s in speeds} - set(choice.evaluated):
        ratios = [speeds[size] - speeds[choice.recommended] for speeds in selection if size in speeds]
        found[size] = reference_speed * math.exp(median(ratios))
    return found


def _ratio(size: int, other: int, rounds: Sequence[Speeds]) -> Interval:
    """Return the logarithm of how many times as fast `size` is, with its interval."""
    return interval([speeds[size] - speeds[other] for speeds in rounds])


def _compared(size: int, other: int, rounds: Sequence[Speeds]) -> Interval:
    """`_ratio`, widened where the rounds contradict each other."""
    return interval_of_rounds([speeds[size] - speeds[other] for speeds in rounds])


def interval_of_rounds(logarithms: Sequence[float]) -> Interval:
    """Compute the interval of the rounds' ratios, widened to their middle half where they contradict each other.

    Rounds that fall in two groups have their centre of symmetry between the two, known well and true of neither.
    """
    ratio = interval(logarithms)
    low, _, high = quantiles(logarithms, n=4)
    if high - low <= math.log(AGREEING_SPREAD):
        return ratio
    return Interval(min(low, ratio.low), ratio.value, max(high, ratio.high))


def _extra_seconds(rounds: Sequence[Round], fewest: int) -> float:
    """Return what the rounds beyond the fewest took."""
    return sum(r.seconds for r in rounds[fewest:])
