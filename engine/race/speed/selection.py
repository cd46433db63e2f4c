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
other work disturbed show no factor, but by `order` at most the order. Where quiet ones are not to be expected any more,
the comparison ends as soon as that is shown or cannot be.

Another size than today's is recommended only where it is shown to be a gain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from ...facts.intervals import ENOUGH_ROUNDS, Interval, interval
from ...facts.speed_rounds import ComparedSizes, SpeedBlock, SpeedClaim, SpeedRound, Stage
from ...facts.stats import NOISE_FRACTION
from .claim import claim_of, is_gain
from .evaluation import CLAIMABLE_HALF_WIDTH, FEWEST_DISTURBED, Evaluation
from .order import gain_beside_others
from .ratios import Ratios, Round, is_load_lasting, mean_shares
from .rounds import Candidates, NextRound

RECOMMENDED_WITHIN = NOISE_FRACTION  # the smallest batch within this share of the fastest is recommended
BLOCK_SECONDS = {Stage.SELECTION: 0.2, Stage.EVALUATION: 0.4}
SELECTION_ROUNDS = 3
EVALUATION_ROUNDS = ENOUGH_ROUNDS
HALF_WIDTH = NOISE_FRACTION  # half width of a log ratio's interval at which the evaluation ends early
FINE_HALF_WIDTH = 0.02  # half width at which the selection ends, although a size may still lie on both sides of the 3 %
CHOOSING_SHARE = 25 / 60
"""Share of the extra seconds that the selection may take."""
PATIENT_SHARE = 1 / 4
"""Share that is spent to reach HALF_WIDTH; after it CLAIMABLE_HALF_WIDTH is enough."""
QUIET_SHARE = 1 / 3
"""Share that the evaluation spends at most on waiting for rounds without other work. Where none of any stage was quiet
for as long, none is waited for."""

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

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """What the answer rests on: the recommended size beside today's and beside the fastest."""
        return [(self.recommended, size) for size in self.evaluated if size != self.recommended]

    def order(self, evaluation: Evaluation[int]) -> SpeedClaim | None:
        if self.current is None:
            return SpeedClaim.NOTHING
        claim = evaluation.order(self.rival, self.current)
        is_contradiction = claim is SpeedClaim.AHEAD and self.recommended == self.current
        return SpeedClaim.NOTHING if is_contradiction else claim


def decide(candidates: Candidates, rounds: Sequence[SpeedRound]) -> NextRound[int] | SpeedVerdict | None:
    """Decide on the next round, or on the verdict, from all rounds so far; None where no size is left to compare."""
    candidates, counted = _without_left_out(candidates, rounds)
    if not candidates.sizes:
        return None
    selected = _select(candidates, counted)
    if selected.choice is None:
        return NextRound(Stage.SELECTION, 0, tuple(selected.remaining))
    evaluation = selected.evaluation(counted)
    if _is_evaluated(selected, evaluation, [candidates.read(r) for r in counted]):
        return _verdict(selected.choice, selected.ratios, evaluation, selected.candidates)
    return NextRound(Stage.EVALUATION, 0, selected.choice.evaluated)


def verdict_of(candidates: Candidates, rounds: Sequence[SpeedRound]) -> SpeedVerdict | None:
    """Return the verdict of the last rounds; None where they are too few for any."""
    candidates, counted = _without_left_out(candidates, rounds)
    if not candidates.sizes or (selected := _select(candidates, counted, is_over=True)).choice is None:
        return None
    evaluation = selected.evaluation(counted)
    count = len(evaluation.rounds)
    is_order = count >= FEWEST_DISTURBED and evaluation.is_disturbed and selected.choice.order(evaluation) is not None
    if count < EVALUATION_ROUNDS and not is_order:
        return None
    return _verdict(selected.choice, selected.ratios, evaluation, selected.candidates)


def _without_left_out(candidates: Candidates, rounds: Sequence[SpeedRound]) -> tuple[Candidates, list[SpeedRound]]:
    gone = [r.left_out for r in rounds if r.left_out is not None]
    candidates = reduce(Candidates.without, gone, candidates)
    whole = _with_collections([r for r in rounds if r.left_out is None])
    if not gone:
        return candidates, whole
    counted = [replace(r, blocks=tuple(b for b in r.blocks if b.batch_size not in gone)) for r in whole]
    return candidates, [r for r in counted if r.blocks]


def _with_collections(rounds: list[SpeedRound]) -> list[SpeedRound]:
    """Add to each block the mean share of its size that garbage collections took."""
    shares = mean_shares((b.batch_size, b.collecting_fraction) for r in rounds for b in r.blocks)

    def added(block: SpeedBlock) -> SpeedBlock:
        return replace(block, step_seconds=block.step_seconds / (1 - shares[block.batch_size]))

    return [replace(r, blocks=tuple(map(added, r.blocks))) for r in rounds] if any(shares.values()) else rounds


@dataclass(frozen=True, slots=True)
class _Selected:
    """What the rounds of the selection decided: `choice`, or the next round of what remains."""

    candidates: Candidates
    ratios: Ratios[int]
    remaining: list[int]
    extra_seconds: float
    choice: _Choice | None

    def evaluation(self, rounds: Sequence[SpeedRound]) -> Evaluation[int]:
        """Return the rounds of what was chosen: an earlier choice was another one if a size was left out since."""
        wanted = set() if self.choice is None else {*self.choice.evaluated}
        own = [r for r in rounds if r.stage is Stage.EVALUATION and {b.batch_size for b in r.blocks} >= wanted]
        read = [self.candidates.read(r) for r in own]
        spread = self.candidates.run_to_run
        return Evaluation(read, self.candidates.shares_cores, spread, start_to_start=spread)


def _select(candidates: Candidates, rounds: Sequence[SpeedRound], *, is_over: bool = False) -> _Selected:
    selection = [candidates.read(r) for r in rounds if r.stage is Stage.SELECTION]
    by_start = {size: math.log(speed) for size, speed in candidates.by_start.items() if size in candidates.sizes}
    first = selection[:1]
    if candidates.shares_cores and any(each.disturbed and each.computing for each in first):
        by_start = {}  # is by the clock
    ratios = Ratios([*([Round(by_start, {})] if by_start else ()), *selection])
    remaining = _remaining(candidates, ratios)
    if not candidates.with_reserve & {*remaining}:  # the last one with reserve was left out
        candidates = replace(candidates, with_reserve=frozenset(remaining[:1]))
    extra = _extra_seconds(selection, SELECTION_ROUNDS - bool(by_start))
    is_over = is_over or extra > CHOOSING_SHARE * candidates.extra_seconds or _stays(candidates, selection)
    return _Selected(candidates, ratios, remaining, extra, _choice(candidates, remaining, ratios, is_over=is_over))


def _remaining(candidates: Candidates, ratios: Ratios[int]) -> list[int]:
    count = len(ratios.rounds)
    if not count:
        return sorted(candidates.sizes)
    sizes = sorted(ratios.rounds[-1].clock)
    limit = -_TOLERANCE - (_SLACK[count - 1] if count <= len(_SLACK) else 0.0)
    keepers = [s for s in sizes if s in candidates.with_reserve]

    def is_clearly_slower(size: int) -> bool:
        rivals = keepers if size in candidates.with_reserve else sizes
        return any(ratios.interval(size, rival).high < limit for rival in rivals)

    return [s for s in sizes if not is_clearly_slower(s)]


def _choice(candidates: Candidates, remaining: Sequence[int], ratios: Ratios[int], *, is_over: bool) -> _Choice | None:
    """Return what the selection decided; None while it goes on."""
    keepers = [s for s in remaining if s in candidates.with_reserve]
    if len(remaining) == 1:
        return _Choice(keepers[0], keepers[0], candidates.current)
    if len(ratios.rounds) < SELECTION_ROUNDS:
        return None
    best = _fastest(keepers, ratios)
    to_keepers = {size: [ratios.interval(size, rival) for rival in keepers] for size in keepers}
    shown = next((s for s in keepers if all(each.low >= -_TOLERANCE for each in to_keepers[s])), None)
    undecided = [s for s in keepers if shown is None or s < shown]
    if not is_over and any(ratios.interval(s, best).half_width > FINE_HALF_WIDTH for s in undecided):
        return None
    recommended = best if shown is None else shown
    highest = _fastest(remaining, ratios)
    as_fast = (s for s in remaining if s >= recommended and ratios.interval(s, highest).high >= 0)
    return _Choice(recommended, next(as_fast, highest), candidates.current)


def _fastest(sizes: Sequence[int], ratios: Ratios[int]) -> int:
    """Return the size with the highest throughput; the smaller of equals."""
    return max(sizes, key=lambda size: (ratios.interval(size, sizes[0]).value, -size))


def _stays(candidates: Candidates, rounds: Sequence[Round[int]]) -> bool:
    patience = QUIET_SHARE * candidates.extra_seconds
    return candidates.shares_cores and is_load_lasting(rounds, longer_than_seconds=patience, fewest_rounds=1)


def _is_evaluated(selected: _Selected, evaluation: Evaluation[int], rounds: Sequence[Round[int]]) -> bool:
    candidates, choice = selected.candidates, selected.choice
    assert choice is not None
    extra = _extra_seconds(evaluation.rounds, EVALUATION_ROUNDS)
    spent, most = selected.extra_seconds + extra, candidates.extra_seconds
    waits = extra <= QUIET_SHARE * most and not _stays(candidates, rounds)
    is_whole = len(evaluation.rounds) >= EVALUATION_ROUNDS
    return evaluation.is_over(
        choice.pairs,
        choice.order(evaluation),
        half_width=HALF_WIDTH if spent <= PATIENT_SHARE * most else CLAIMABLE_HALF_WIDTH,
        waits=waits,
        is_late=is_whole and spent + evaluation.rounds[-1].seconds > most,
    )


def _verdict(
    choice: _Choice, selection: Ratios[int], evaluation: Evaluation[int], candidates: Candidates
) -> SpeedVerdict:
    ratios = {pair: evaluation.ratio(*pair) for pair in choice.pairs}
    decisive, gain = max(ratios, key=lambda pair: ratios[pair].half_width, default=None), None
    is_narrow = all(evaluation.is_narrow(*pair, CLAIMABLE_HALF_WIDTH) for pair in ratios)
    claim = SpeedClaim.FIGURE if is_narrow else SpeedClaim.NOTHING
    if choice.current is not None and choice.rival != choice.current:
        gain = evaluation.gain(choice.rival, choice.current)
        claim = claim_of(gain, is_narrow=is_narrow)
        if claim is not SpeedClaim.FIGURE or candidates.shares_cores:
            decisive = (choice.rival, choice.current)
    bounds = None if decisive is None else evaluation.gain(*decisive)
    if evaluation.is_disturbed:
        claim = choice.order(evaluation) or SpeedClaim.NOTHING
        if claim is SpeedClaim.NO_GAIN and decisive is not None:
            bounds, gain = gain_beside_others(evaluation.ratios.computing(*decisive)).exp(), None
    elif claim in _contradicting(choice, candidates):
        claim = SpeedClaim.NOTHING
    recommended, speedup = _advice(choice, claim, gain)
    speeds = _samples_per_second(choice, evaluation)
    return SpeedVerdict(
        claim=claim,
        recommended=recommended,
        fastest=choice.fastest if claim is SpeedClaim.FIGURE else None,
        speedup=speedup,
        speeds=speeds,
        rough=_rough(choice, speeds[choice.recommended].value, selection),
        compared=None if decisive is None or bounds is None else ComparedSizes(*decisive, bounds.low, bounds.high),
        rounds=len(_counted(evaluation)),
        quiet_rounds=evaluation.quiet_rounds,
    )


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


def _counted(evaluation: Evaluation[int]) -> Sequence[Round[int]]:
    quiet = [each for each in evaluation.rounds if not each.disturbed]
    return quiet if len(quiet) >= EVALUATION_ROUNDS else evaluation.rounds


def _samples_per_second(choice: _Choice, evaluation: Evaluation[int]) -> dict[int, Interval]:
    reference, rounds = choice.current or choice.recommended, _counted(evaluation)
    level = interval([each.clock[reference] for each in rounds]).value
    found = {}
    for size in choice.evaluated:
        own = interval([each.clock[size] for each in rounds])
        value = level + evaluation.ratios.interval(size, reference).value
        widened = Interval(min(own.low, value), value, max(own.high, value))
        found[size] = widened.widened(evaluation.deviation(size, reference)).exp()
    return found


def _rough(choice: _Choice, reference_speed: float, selection: Ratios[int]) -> dict[int, float]:
    sizes = {size for each in selection.rounds for size in each.clock} - {*choice.evaluated}
    return {s: reference_speed * math.exp(selection.interval(s, choice.recommended).value) for s in sizes}


def _extra_seconds(rounds: Sequence[Round[int]], fewest: int) -> float:
    return sum(r.seconds for r in rounds[fewest:])
