"""PURE: which batch sizes to time next, and the verdict of the comparison.

`decide` takes all rounds so far and returns the sizes of the next one, or the verdict. It has no state.

A round runs one block of steps of each of its sizes, in random order, so that other work on the machine affects all of
them alike: only ratios within a round are compared. Two stages keep the choice free of selection bias:

1. *Selection* over all candidates; what was measured of them before counts as a round. Sizes that are clearly slower
   drop out round by round. It ends with the recommended size, the smallest that is shown to be within 3 % of every
   other one that keeps the reserve, and with the fastest, the smallest whose throughput cannot be distinguished from
   the highest.
2. *Evaluation* of today's size, the recommended and the fastest, with new rounds only. A size that won the selection
   by luck has no advantage here. The intervals of this stage are reported.

Rounds of one process do not show how runs differ. So the reported intervals are wider than theirs, by the candidates'
`run_to_run`, unless each block was a start of its own.

On an idle machine the fewest rounds suffice. With other work on it further rounds are run, for a bounded time;
if the interval is too wide for a figure even then, `claim` decides what its ends still show. On a CPU, rounds that
other work disturbed show no factor: they choose by the time for which each training had a core, where that is known,
and show the order by `order` at most. Where quiet ones are not to be expected any more, the comparison ends as soon as
that is shown or cannot be.

Another size than today's is recommended only where it is shown to be a gain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import takewhile
from statistics import fmean, median, quantiles

from ..results.intervals import ENOUGH_ROUNDS, Interval, interval
from ..results.speed_rounds import ComparedSizes, SpeedClaim, SpeedRound, Speeds, Stage
from ..results.stats import NOISE_FRACTION
from .claim import claim_of, is_gain
from .order import gain_beside_others, order_of
from .rounds import Candidates, RunRound

RECOMMENDED_WITHIN = NOISE_FRACTION  # the smallest batch within this share of the fastest is recommended
BLOCK_SECONDS = {Stage.SELECTION: 0.2, Stage.EVALUATION: 0.4}
SELECTION_ROUNDS = 3
EVALUATION_ROUNDS = ENOUGH_ROUNDS
HALF_WIDTH = NOISE_FRACTION  # half width of a log ratio's interval at which the evaluation ends early
FINE_HALF_WIDTH = 0.02  # half width at which the selection ends, although a size may still lie on both sides of the 3 %
MEASURABLE_SPREAD = 1.10  # upper end over lower end of a ratio's interval; beyond it no figure is claimed
CLAIMABLE_HALF_WIDTH = math.log(MEASURABLE_SPREAD) / 2
AGREEING_SPREAD = 1.25  # upper over lower quartile of the rounds' ratios; beyond it the rounds contradict each other
CHOOSING_SHARE = 25 / 60
"""Share of the extra seconds that the selection may take."""
PATIENT_SHARE = 1 / 4
"""Share that is spent to reach HALF_WIDTH; after it CLAIMABLE_HALF_WIDTH is enough."""
QUIET_SHARE = 1 / 3
"""Share that the evaluation spends at most on waiting for rounds without other work. Where none of any stage was quiet
for as long, none is waited for."""
FEWEST_DISTURBED = 2  # rounds of the evaluation, where it ends because other work stays
LOOK_EVERY = 3  # rounds between two looks at the interval: each look is a chance to stop by accident

_TOLERANCE = -math.log1p(-RECOMMENDED_WITHIN)
_SLACK = (math.log(4), math.log(1.6), math.log(1.15))  # log ratio by which a size must be slower to drop out, by round


@dataclass(frozen=True, slots=True)
class SpeedVerdict:
    """The verdict: `speeds` are the samples a second of the evaluated sizes, `rough` those of the others.

    `compared` are the two sizes that decided. `speedup` is that of the recommended size over today's: exactly 1 where
    today's is recommended, None where it was not compared. `recommended` is None where nothing is claimed; `fastest`
    is only known with figures.
    """

    claim: SpeedClaim
    recommended: int | None
    fastest: int | None
    speedup: Interval | None
    speeds: dict[int, Interval]
    rough: dict[int, float]
    compared: ComparedSizes | None
    rounds: int
    quiet_rounds: int


def decide(candidates: Candidates, rounds: Sequence[SpeedRound]) -> RunRound | SpeedVerdict | None:
    """Decide on the next round, or on the verdict, from all rounds so far; None where no size is left to compare."""
    candidates, counted = _without_left_out(candidates, rounds)
    if not candidates.sizes:
        return None
    selected = _select(candidates, counted)
    if selected.choice is None:
        return RunRound(Stage.SELECTION, tuple(selected.remaining))
    evaluation = _evaluated(selected.choice, counted)
    stays = does_load_stay(selected.candidates, counted)
    if _is_evaluated(selected.choice, evaluation, selected.candidates, selected.extra_seconds, stays=stays):
        return _verdict(selected.choice, selected.speeds, evaluation, selected.candidates)
    return RunRound(Stage.EVALUATION, selected.choice.evaluated)


def verdict_of(candidates: Candidates, rounds: Sequence[SpeedRound]) -> SpeedVerdict | None:
    """Return the verdict of the last rounds; None where they are too few for any."""
    candidates, counted = _without_left_out(candidates, rounds)
    if not candidates.sizes or (choice := (selected := _select(candidates, counted, is_over=True)).choice) is None:
        return None
    evaluation = _evaluated(choice, counted)
    is_order = len(evaluation) >= FEWEST_DISTURBED and _is_disturbed(evaluation, selected.candidates)
    if len(evaluation) < EVALUATION_ROUNDS and not (is_order and choice.order(evaluation) is not None):
        return None
    return _verdict(choice, selected.speeds, evaluation, selected.candidates)


def _without_left_out(candidates: Candidates, rounds: Sequence[SpeedRound]) -> tuple[Candidates, list[SpeedRound]]:
    gone = [r.left_out for r in rounds if r.left_out is not None]
    if not gone:
        return candidates, list(rounds)
    candidates = reduce(Candidates.without, gone, candidates)
    whole = [r for r in rounds if r.left_out is None]
    counted = [replace(r, blocks=tuple(b for b in r.blocks if b.batch_size not in gone)) for r in whole]
    return candidates, [r for r in counted if r.blocks]


@dataclass(frozen=True, slots=True)
class _Selected:
    """What the rounds of the selection decided: `choice`, or the next round of what remains."""

    candidates: Candidates
    speeds: list[Speeds]
    remaining: list[int]
    extra_seconds: float
    choice: _Choice | None


def _select(candidates: Candidates, rounds: Sequence[SpeedRound], *, is_over: bool = False) -> _Selected:
    selection = [r for r in rounds if r.stage is Stage.SELECTION]
    known = {s: math.log(speed) for s, speed in candidates.by_start.items() if s in candidates.sizes}
    if selection and _counts_computing(selection[0], candidates):
        known = {}  # `by_start` is by the clock
    speeds = [_speeds(r, candidates) for r in selection]
    if known:
        speeds.insert(0, known)
    remaining = _remaining(candidates, speeds)
    if not candidates.with_reserve & {*remaining}:  # the last one with reserve was left out
        candidates = replace(candidates, with_reserve=frozenset(remaining[:1]))
    extra = _extra_seconds(selection, SELECTION_ROUNDS - bool(known))
    is_long = extra > CHOOSING_SHARE * candidates.extra_seconds
    is_over = is_over or is_long or does_load_stay(candidates, selection)
    choice = _choice(candidates, remaining, speeds, is_over=is_over)
    return _Selected(candidates, speeds, remaining, extra, choice)


def _evaluated(choice: _Choice, rounds: Sequence[SpeedRound]) -> list[SpeedRound]:
    """Return the rounds of what was chosen: an earlier choice was another one if a size was left out since."""
    wanted = {*choice.evaluated}
    return [r for r in rounds if r.stage is Stage.EVALUATION and {b.batch_size for b in r.blocks} >= wanted]


def _counts_computing(each: SpeedRound, candidates: Candidates) -> bool:
    return candidates.shares_cores and candidates.is_disturbed(each) and each.computing_speeds() is not None


def _speeds(each: SpeedRound, candidates: Candidates) -> Speeds:
    """Return the speeds to choose by: where other work shares the cores, by the time that each training had one."""
    return (each.computing_speeds() if _counts_computing(each, candidates) else None) or each.speeds()


def _computing_speeds(rounds: Sequence[SpeedRound]) -> list[Speeds]:
    """Return the speeds by the time that each training had a core; empty where a round lacks that time."""
    known = [each for r in rounds if (each := r.computing_speeds()) is not None]
    return known if len(known) == len(rounds) else []


def _is_disturbed(rounds: Sequence[SpeedRound], candidates: Candidates) -> bool:
    """Whether too few rounds were quiet, on cores that other work uses, to show a factor."""
    return candidates.shares_cores and sum(not candidates.is_disturbed(r) for r in rounds) < EVALUATION_ROUNDS


@dataclass(frozen=True, slots=True)
class _Choice:
    """The sizes that the selection names, and today's."""

    recommended: int
    fastest: int
    current: int | None

    @property
    def evaluated(self) -> tuple[int, ...]:
        return tuple(sorted({self.recommended, self.fastest, self.current or self.recommended}))

    @property
    def rival(self) -> int:
        """The size compared with today's: the recommended one, or where that is today's, the fastest."""
        return self.fastest if self.recommended == self.current else self.recommended

    def order(self, rounds: Sequence[SpeedRound]) -> SpeedClaim | None:
        """Return what disturbed rounds show of the rival and today's size; None while more of them may show it."""
        if self.current is None:
            return SpeedClaim.NOTHING
        computing = _computing_speeds(rounds)
        if self.rival == self.current:
            return SpeedClaim.NO_GAIN if computing else SpeedClaim.NOTHING
        claim = order_of(self.gains([r.speeds() for r in rounds]), self.gains(computing) if computing else None)
        is_contradiction = claim is SpeedClaim.AHEAD and self.recommended == self.current
        return SpeedClaim.NOTHING if is_contradiction else claim

    def gains(self, rounds: Sequence[Speeds]) -> list[float]:
        assert self.current is not None
        return [each[self.rival] - each[self.current] for each in rounds]

    def ratios(self, rounds: Sequence[Speeds]) -> dict[int, Interval]:
        """Return the ratios that the answer rests on: the recommended size against today's and against the fastest."""
        return {s: _compared(self.recommended, s, rounds) for s in self.evaluated if s != self.recommended}


def _remaining(candidates: Candidates, rounds: Sequence[Speeds]) -> list[int]:
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
    candidates: Candidates, remaining: Sequence[int], rounds: Sequence[Speeds], *, is_over: bool
) -> _Choice | None:
    """Return what the selection decided; None while it goes on."""
    keepers = [s for s in remaining if s in candidates.with_reserve]
    if len(remaining) == 1:
        return _Choice(keepers[0], keepers[0], candidates.current)
    if len(rounds) < SELECTION_ROUNDS:
        return None
    best = _highest(keepers, rounds)
    shown = next((s for s in keepers if all(_ratio(s, r, rounds).low >= -_TOLERANCE for r in keepers)), None)
    undecided = [s for s in keepers if shown is None or s < shown]
    is_settled = all(_ratio(s, best, rounds).half_width <= FINE_HALF_WIDTH for s in undecided)
    if not is_settled and not is_over:
        return None
    recommended = best if shown is None else shown
    highest = _highest(remaining, rounds)
    as_fast = (s for s in remaining if s >= recommended and _ratio(s, highest, rounds).high >= 0)
    return _Choice(recommended, next(as_fast, highest), candidates.current)


def _highest(sizes: Sequence[int], rounds: Sequence[Speeds]) -> int:
    """Return the size with the highest throughput, relative to each round's own mean; the smaller of equals."""
    means = [fmean(speeds[s] for s in sizes) for speeds in rounds]
    height = {s: median(speeds[s] - mean for speeds, mean in zip(rounds, means, strict=True)) for s in sizes}
    return max(sizes, key=lambda s: (height[s], -s))


def does_load_stay(candidates: Candidates, rounds: Sequence[SpeedRound]) -> bool:
    """Whether other work has disturbed all latest rounds for so long, on shared cores, that none is expected to end."""
    disturbed = takewhile(candidates.is_disturbed, reversed(rounds))
    return candidates.shares_cores and sum(r.seconds for r in disturbed) > QUIET_SHARE * candidates.extra_seconds


def _is_evaluated(
    choice: _Choice, rounds: Sequence[SpeedRound], candidates: Candidates, extra_of_selection: float, *, stays: bool
) -> bool:
    extra, patience = _extra_seconds(rounds, EVALUATION_ROUNDS), QUIET_SHARE * candidates.extra_seconds
    if _is_disturbed(rounds, candidates) and (stays or extra > patience):
        is_decided = len(rounds) >= FEWEST_DISTURBED and choice.order(rounds) is not None
        return is_decided or (len(rounds) >= FEWEST_DISTURBED and extra_of_selection + extra > candidates.extra_seconds)
    if len(rounds) < EVALUATION_ROUNDS:
        return False
    if extra_of_selection + extra + rounds[-1].seconds > candidates.extra_seconds:
        return True
    is_few = sum(not candidates.is_disturbed(r) for r in rounds) < EVALUATION_ROUNDS
    if (is_few and extra <= patience) or len(rounds) % LOOK_EVERY:
        return False
    is_patient = extra_of_selection + extra <= PATIENT_SHARE * candidates.extra_seconds
    half_width = HALF_WIDTH if is_patient else CLAIMABLE_HALF_WIDTH
    return all(ratio.half_width <= half_width for ratio in choice.ratios(_used(rounds, candidates)).values())


def _verdict(
    choice: _Choice, selection: Sequence[Speeds], rounds: Sequence[SpeedRound], candidates: Candidates
) -> SpeedVerdict:
    used = _used(rounds, candidates)
    deviation = candidates.run_to_run if any(b.was_held for r in rounds for b in r.blocks) else 0.0
    widest = max(choice.ratios(used).items(), key=lambda item: item[1].half_width, default=None)
    compared = None if widest is None else _sizes(choice.recommended, widest[0], widest[1].widened(deviation).exp())
    is_narrow = widest is None or widest[1].half_width <= CLAIMABLE_HALF_WIDTH
    claim, gain = SpeedClaim.FIGURE if is_narrow else SpeedClaim.NOTHING, None
    if choice.current is not None and choice.rival != choice.current:
        gain = _compared(choice.rival, choice.current, used).widened(deviation).exp()
        claim = claim_of(gain, is_narrow=is_narrow)
        if claim is not SpeedClaim.FIGURE or candidates.shares_cores:
            compared = _sizes(choice.rival, choice.current, gain)
    if _is_disturbed(rounds, candidates):
        claim = choice.order(rounds) or SpeedClaim.NOTHING
        if claim is SpeedClaim.NO_GAIN:
            gain = None  # the gain is by the clock
            if choice.current is not None and choice.rival != choice.current:
                bounds = gain_beside_others(choice.gains(_computing_speeds(rounds))).exp()
                compared = _sizes(choice.rival, choice.current, bounds)
    elif claim in _contradicting(choice, candidates):
        claim = SpeedClaim.NOTHING
    recommended, speedup = _advice(choice, claim, gain)
    speeds = _samples_per_second(choice, used, deviation)
    return SpeedVerdict(
        claim=claim,
        recommended=recommended,
        fastest=choice.fastest if claim is SpeedClaim.FIGURE else None,
        speedup=speedup,
        speeds=speeds,
        rough=_rough(choice, speeds[choice.recommended].value, selection),
        compared=compared,
        rounds=len(used),
        quiet_rounds=sum(not candidates.is_disturbed(r) for r in rounds),
    )


def _sizes(size: int, other: int, ratio: Interval) -> ComparedSizes:
    return ComparedSizes(size, other, ratio.low, ratio.high)


def _contradicting(choice: _Choice, candidates: Candidates) -> tuple[SpeedClaim, ...]:
    """Return claims that contradict the selection: then nothing is known, as up to half are wrong in simulations."""
    if choice.recommended == choice.current:
        return (SpeedClaim.AT_LEAST,)
    return (SpeedClaim.NO_GAIN,) if choice.current in candidates.with_reserve else ()


def _advice(choice: _Choice, claim: SpeedClaim, gain: Interval | None) -> tuple[int | None, Interval | None]:
    """Return the size and its speed-up: the selected size if it gains or today's does not train, else today's."""
    if claim is SpeedClaim.NOTHING:
        return None, None
    if choice.current is None or claim is SpeedClaim.AHEAD:
        return choice.recommended, None
    if gain is not None and choice.recommended != choice.current:
        figure = gain.value if claim is SpeedClaim.FIGURE else None
        if is_gain(figure, gain.low):
            return choice.recommended, gain
    return choice.current, Interval(1.0, 1.0, 1.0)


def _used(rounds: Sequence[SpeedRound], candidates: Candidates) -> list[Speeds]:
    quiet = [r for r in rounds if not candidates.is_disturbed(r)]
    return [r.speeds() for r in (quiet if len(quiet) >= EVALUATION_ROUNDS else rounds)]


def _samples_per_second(choice: _Choice, rounds: Sequence[Speeds], deviation: float) -> dict[int, Interval]:
    reference = choice.current or choice.recommended
    level = interval([speeds[reference] for speeds in rounds]).value
    found = {}
    for size in choice.evaluated:
        own = interval([speeds[size] for speeds in rounds])
        value = level + _ratio(size, reference, rounds).value
        found[size] = Interval(min(own.low, value), value, max(own.high, value)).widened(deviation).exp()
    return found


def _rough(choice: _Choice, reference_speed: float, selection: Sequence[Speeds]) -> dict[int, float]:
    found = {}
    for size in {s for speeds in selection for s in speeds} - set(choice.evaluated):
        ratios = [speeds[size] - speeds[choice.recommended] for speeds in selection if size in speeds]
        found[size] = reference_speed * math.exp(median(ratios))
    return found


def _ratio(size: int, other: int, rounds: Sequence[Speeds]) -> Interval:
    """Return the logarithm of how many times as fast `size` is, with its interval."""
    return interval([speeds[size] - speeds[other] for speeds in rounds])


def _compared(size: int, other: int, rounds: Sequence[Speeds]) -> Interval:
    return interval_of_rounds([speeds[size] - speeds[other] for speeds in rounds])


def interval_of_rounds(logarithms: Sequence[float]) -> Interval:
    """Compute the interval of the rounds' ratios, at least their middle half where they fall into two groups."""
    ratio = interval(logarithms)
    low, _, high = quantiles(logarithms, n=4)
    if high - low <= math.log(AGREEING_SPREAD):
        return ratio
    return Interval(min(low, ratio.low), ratio.value, max(high, ratio.high))


def _extra_seconds(rounds: Sequence[SpeedRound], fewest: int) -> float:
    return sum(r.seconds for r in rounds[fewest:])
