"""PURE: which sizes to start next so that their speeds can be compared, and the verdict.

The speeds of two starts alone say little: each process has its memory elsewhere, and the machine may have done other
work. So starts of all compared sizes take turns, in one order and then in the reverse (A B C C B A), and only speeds of
the same round are compared. What differs from process to process then lies in the spread of the rounds: their interval
is reported as it is. Two stages keep the choice from flattering itself, as in `engine.speed.selection`:

1. *Selection* among the other sizes, if there are several: the smallest that is not shown to be slower than the fastest
   of them by more than 3 %. The start that each of them had in the search counts as a round of its own, but not
   against all others.
2. *Evaluation* of that size against today's, by pairs of new starts. Only these are reported. On a CPU that other work
   uses they show no factor, and the order by `engine.speed.order` at most: then it ends as there.

Nothing here has a state: what was started decides what is started next, so that a document can be decided on again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, median

from ...results.intervals import ENOUGH_ROUNDS, Interval, interval
from ...results.result import Probe, Purpose
from ...results.speed_rounds import SpeedClaim, SpeedRound, Stage
from ...speed.claim import claim_of, is_gain
from ...speed.comparison import Comparison, reason
from ...speed.order import CLEAR_ROUNDS, is_ahead
from ...speed.reasons import TOOK_LONG
from ...speed.rounds import OF_STARTS, RunRound, describe_busy_starts
from ...speed.selection import (
    CLAIMABLE_HALF_WIDTH,
    FEWEST_DISTURBED,
    RECOMMENDED_WITHIN,
    RUN_TO_RUN,
    interval_of_rounds,
)
from ..evidence import Evidence
from ..plan import PAIRS_PRIOR, pairs_expected
from ..training import Throughput

MOST_STARTS = 24
MOST_SECONDS = 900.0
"""A comparison ends after this many starts, these seconds, or with the time budget, whichever comes first."""
SELECTION_ROUNDS = 2  # beside the starts of the search
CLEARLY_SLOWER = math.log(1.15)  # in every round so far: such a size need not be started again

METHOD = (
    f"{OF_STARTS}the sizes in turns (A B B A), each a fresh process; signed-rank interval of the ratios of the pairs, "
    "whose starts are others than those that chose the size"
)
METHOD_HELD = (
    f"{OF_STARTS}the sizes, each held in its own process, train blocks in turns (A B B A); signed-rank interval of "
    f"the ratios of the pairs, widened by the {RUN_TO_RUN:.1%} by which runs differ"
)

_TOLERANCE = -math.log1p(-RECOMMENDED_WITHIN)


@dataclass(frozen=True, slots=True)
class Compared:
    """What is compared: today's size, None where it was refused here, and up to three others, in rising order.

    `by_start` has the samples a second of each other size in its start of the search. `most_seconds` is how long the
    comparison may take. `shares_cores`: it trains on the CPU, of `cores`.
    """

    today: int | None
    others: tuple[int, ...]
    by_start: Mapping[int, float]
    most_seconds: float = math.inf
    shares_cores: bool = False
    cores: int | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.others if self.today is None else (self.today, *self.others)


@dataclass(frozen=True, slots=True)
class StartedRound:
    """One start of each size. `speeds` are samples a second by size, in the order of the starts.

    `others_cores` is what other work used meanwhile; None where it is unknown.
    """

    stage: Stage
    speeds: Mapping[int, float]
    seconds: float
    others_cores: float | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sizes that the evaluation compares, and how many times as fast `other` is as `base`.

    `base` is today's size; where that was refused, the size that is recommended unless `other` is faster.
    """

    base: int
    other: int
    ratio: Interval
    is_claimable: bool


def next_round(compared: Compared, rounds: Sequence[StartedRound]) -> RunRound | None:
    selection, evaluation = _of_stage(rounds, Stage.SELECTION), _of_stage(rounds, Stage.EVALUATION)
    remaining = _remaining(compared, selection)
    if _is_chosen(remaining, selection):
        if _is_enough(compared, rounds):
            return None
        base, other = _sizes_of_pair(compared, selection)
        step = RunRound(Stage.EVALUATION, _in_turn((base, other), len(evaluation)))
    else:
        step = RunRound(Stage.SELECTION, _in_turn(remaining, len(selection)))
    longest = max((r.seconds / len(r.speeds) for r in rounds), default=0.0)
    spent = sum(r.seconds for r in rounds)
    return None if spent + longest * len(step.sizes) > compared.most_seconds else step


def does_load_stay(compared: Compared, rounds: Sequence[StartedRound]) -> bool:
    """Whether other work used so much of shared cores that all starts will count as disturbed, whatever follows."""
    used = [(r.others_cores or 0.0) * len(r.speeds) for r in rounds]
    return compared.shares_cores and describe_busy_starts(sum(used) / MOST_STARTS, compared.cores) is not None


def starts_at_most(rounds: Sequence[StartedRound]) -> int:
    return MOST_STARTS - sum(len(r.speeds) for r in rounds)


def starts_expected(compared: Compared, rounds: Sequence[StartedRound]) -> list[int]:
    selection, evaluation = _of_stage(rounds, Stage.SELECTION), _of_stage(rounds, Stage.EVALUATION)
    remaining = _remaining(compared, selection)
    if not _is_chosen(remaining, selection):
        choosing = [len(remaining)] * (SELECTION_ROUNDS - len(selection))
        return [*choosing, *[2] * PAIRS_PRIOR]
    base, other = _sizes_of_pair(compared, selection)
    ratios = [math.log(r.speeds[other] / r.speeds[base]) for r in evaluation]
    pairs = pairs_expected(ratios, _most_pairs(selection))
    pairs = CLEAR_ROUNDS if does_load_stay(compared, rounds) else pairs
    return [2] * (pairs - len(evaluation))


def verdict(
    compared: Compared,
    rounds: Sequence[StartedRound],
    ended: str | None,
    *,
    seconds: float,
    others_cores: float | None = None,
    cores: int | None = None,
    are_held: bool = False,
) -> Comparison:
    """Return the chosen size where it is a gain over today's, else today's; none where neither is shown.

    `ended` is the reason of starts that ended early. Starts that `are_held` for several blocks do not show how starts
    differ: then that is added. `others_cores` of the machine's `cores` were used by other
    work meanwhile: on a CPU that slows small batches down more than large ones (see `engine.speed.selection`).
    """
    selection, evaluation = _of_stage(rounds, Stage.SELECTION), _of_stage(rounds, Stage.EVALUATION)
    method = METHOD_HELD if are_held else METHOD
    facts = partial(
        Comparison, rounds=len(evaluation), seconds=seconds, method=method, others_cores=others_cores, cores=cores
    )
    is_disturbed = compared.shares_cores and describe_busy_starts(others_cores, cores) is not None
    order = _is_ahead(compared, rounds) if is_disturbed else None
    if len(evaluation) < (ENOUGH_ROUNDS if order is None else FEWEST_DISTURBED):
        return facts(reason=ended or TOOK_LONG.write(minutes_count=f"{compared.most_seconds / 60:.0f}"))
    pair = pair_of(*_sizes_of_pair(compared, selection), evaluation, RUN_TO_RUN if are_held else 0.0)
    claim = _claim(compared, pair)
    if is_disturbed:
        claim = SpeedClaim.AHEAD if order else SpeedClaim.NOTHING
    found = facts(claim=claim, reason=reason(claim, (pair.other, pair.base, pair.ratio), len(evaluation)))
    if claim is SpeedClaim.NOTHING:
        return found
    if claim is SpeedClaim.AHEAD:
        return replace(found, recommended=pair.other)
    is_faster = is_gain(pair.ratio.value if found.is_measurable else None, pair.ratio.low)
    speedup = pair.ratio if is_faster else Interval(1.0, 1.0, 1.0)
    found = replace(
        found,
        recommended=pair.other if is_faster else pair.base,
        speedup=None if compared.today is None else speedup,
    )
    if not found.is_measurable:
        return found
    speeds = _speeds(pair, evaluation)
    chosen = pair.base if compared.today is None else pair.other
    return replace(found, speeds=speeds, rough=_rough(chosen, speeds, selection))


def pair_of(base: int, other: int, evaluation: Sequence[StartedRound], deviation: float = 0.0) -> Pair:
    """Compare two sizes by their pairs; starts differ by the `deviation` beyond what the pairs show."""
    ratio = interval_of_rounds([math.log(r.speeds[other] / r.speeds[base]) for r in evaluation])
    is_claimable = ratio.high - ratio.low <= 2 * CLAIMABLE_HALF_WIDTH
    return Pair(base, other, ratio.widened(deviation).exp(), is_claimable)


def rounds_of(rounds: Sequence[SpeedRound], probes: Sequence[Probe]) -> list[StartedRound]:
    steps = {p.batch_size: p.timed_step_seconds for p in probes if p.purpose is Purpose.TIMING}
    found = []
    for each in rounds:
        speeds = {}
        for block in each.blocks:
            own = steps.get(block.batch_size, ())[block.first_step : block.first_step + block.steps]
            samples = block.batch_size * block.micro_batches
            speeds[block.batch_size] = samples / fmean(own) if sum(own) else math.nan  # the steps are not there
        others = [block.others_cores for block in each.blocks if block.others_cores is not None]
        found.append(StartedRound(each.stage, speeds, each.seconds, fmean(others) if others else None))
    return found


def mean_speed(probe: Probe) -> float:
    """Return the samples a second over all timed steps: where data comes in bursts, the median step is too short."""
    return samples_of_a_step(probe) / fmean(probe.timed_step_seconds)


def samples_of_a_step(probe: Probe) -> float:
    return (probe.samples_per_second or 0.0) * (probe.step_seconds or 0.0)


def _of_stage(rounds: Sequence[StartedRound], stage: Stage) -> list[StartedRound]:
    return [r for r in rounds if r.stage is stage]


def _in_turn(sizes: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the order of a round: the reverse of the round before, so that a slow drift hits all sizes alike."""
    return tuple(sorted(sizes, reverse=count % 2 == 1))


def _logarithms(compared: Compared, selection: Sequence[StartedRound]) -> list[dict[int, float]]:
    rounds = [{size: compared.by_start[size] for size in compared.others}, *(r.speeds for r in selection)]
    return [{size: math.log(speed) for size, speed in each.items()} for each in rounds]


def _remaining(compared: Compared, selection: Sequence[StartedRound]) -> list[int]:
    if not selection:
        return list(compared.others)
    speeds, sizes = _logarithms(compared, selection), sorted(selection[-1].speeds)

    def is_clearly_slower(size: int) -> bool:
        return any(all(each[size] < each[rival] - CLEARLY_SLOWER for each in speeds) for rival in sizes)

    return [size for size in sizes if not is_clearly_slower(size)]


def _is_chosen(remaining: Sequence[int], selection: Sequence[StartedRound]) -> bool:
    return len(remaining) == 1 or len(selection) >= SELECTION_ROUNDS


def _sizes_of_pair(compared: Compared, selection: Sequence[StartedRound]) -> tuple[int, int]:
    """Return the two sizes to evaluate, once a size is chosen.

    The best is the fastest of the rounds: starts of the search were not made in turns. They count as a round of their
    own for a smaller size, unless every round showed it to be clearly slower.
    """
    remaining, (by_start, *rounds) = _remaining(compared, selection), _logarithms(compared, selection)
    means = {s: fmean([each[s] for each in rounds if s in each] or [by_start[s]]) for s in compared.others}
    best = max(remaining, key=lambda size: (means[size], -size))

    def is_as_fast(size: int) -> bool:
        ahead = [each[size] - each[best] for each in rounds]
        return (
            max(ahead, default=0.0) >= -CLEARLY_SLOWER and max([*ahead, by_start[size] - by_start[best]]) >= -_TOLERANCE
        )

    chosen = next(size for size in remaining if is_as_fast(size))
    if compared.today is not None:
        return compared.today, chosen
    return chosen, max((s for s in compared.others if s != chosen), key=lambda size: (means[size], -size))


def _is_enough(compared: Compared, rounds: Sequence[StartedRound]) -> bool:
    """Return whether to stop: only after an even number of pairs, when each size was the first one equally often."""
    selection, evaluation = _of_stage(rounds, Stage.SELECTION), _of_stage(rounds, Stage.EVALUATION)
    pairs = len(evaluation)
    if pairs >= _most_pairs(selection):
        return True
    if pairs >= FEWEST_DISTURBED and does_load_stay(compared, rounds) and _is_ahead(compared, rounds) is not None:
        return True
    if pairs < ENOUGH_ROUNDS or pairs % 2:
        return False
    return pair_of(*_sizes_of_pair(compared, selection), evaluation).is_claimable


def _is_ahead(compared: Compared, rounds: Sequence[StartedRound]) -> bool | None:
    selection, evaluation = _of_stage(rounds, Stage.SELECTION), _of_stage(rounds, Stage.EVALUATION)
    if compared.today is None:
        return False
    if not evaluation:
        return None
    base, other = _sizes_of_pair(compared, selection)
    return is_ahead(r.speeds[other] / r.speeds[base] for r in evaluation)


def _most_pairs(selection: Sequence[StartedRound]) -> int:
    return (MOST_STARTS - sum(len(r.speeds) for r in selection)) // 4 * 2


def _claim(compared: Compared, pair: Pair) -> SpeedClaim:
    claim = claim_of(pair.ratio, is_narrow=pair.is_claimable)
    if compared.today is None and claim is not SpeedClaim.FIGURE:
        return SpeedClaim.NOTHING  # without today's size, there is no gain whose lower end could be claimed
    return claim


def _speeds(pair: Pair, evaluation: Sequence[StartedRound]) -> dict[int, Interval]:
    own, others = (interval([math.log(r.speeds[s]) for r in evaluation]).exp() for s in (pair.base, pair.other))
    value = own.value * pair.ratio.value
    return {pair.base: own, pair.other: Interval(min(others.low, value), value, max(others.high, value))}


def _rough(chosen: int, speeds: Mapping[int, Interval], selection: Sequence[StartedRound]) -> dict[int, float]:
    found = {}
    for size in {s for r in selection for s in r.speeds} - speeds.keys():
        ratios = [r.speeds[size] / r.speeds[chosen] for r in selection if size in r.speeds]
        found[size] = speeds[chosen].value * median(ratios)
    return found


def throughput_of(evidence: Evidence) -> Throughput:
    probe = evidence.probe
    return Throughput(
        probe.batch_size,
        mean_speed(probe) if probe.timed_step_seconds else None,
        tokens_per_second=evidence.tokens_per_second,
        waiting_fraction=evidence.waiting_fraction,
        is_steady=probe.timing_is_steady,
    )
