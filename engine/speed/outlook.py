"""PURE: how many more rounds a comparison of speeds is expected to take, and how long.

The further rounds are simulated by the rules of `selection`. It is assumed that an interval gets narrower with the
square root of the number of rounds, and that rounds stay as long and as often undisturbed as they were.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median, quantiles

from ..results.speed_rounds import Stage
from .order import CLEAR_ROUNDS
from .rounds import Candidates, Round
from .selection import (
    AGREEING_SPREAD,
    BLOCK_SECONDS,
    CLAIMABLE_HALF_WIDTH,
    EVALUATION_ROUNDS,
    EXTRA_SECONDS,
    FINE_HALF_WIDTH,
    HALF_WIDTH,
    LOOK_EVERY,
    PATIENT_SECONDS,
    QUIET_EXTRA_SECONDS,
    SELECTION_EXTRA_SECONDS,
    SELECTION_ROUNDS,
    does_load_stay,
)

_EVALUATED = 2.5  # mean number of sizes in an evaluation round: today's, recommended, fastest; two may be the same
_SHORTER_BLOCK = math.sqrt(BLOCK_SECONDS[Stage.SELECTION] / BLOCK_SECONDS[Stage.EVALUATION])
RANKS_95, _FEW = 2.0, 3  # half of a 95 % rank interval is about RANKS_95 x spread / sqrt(rounds - _FEW)
DEVIATIONS_OF_MEDIAN = 1.4826  # standard deviation / median absolute deviation of normal errors
WITHOUT_THE_FIRST = 4  # from this many rounds on the first one, which ran in a new process, does not count
_LATEST = 5  # latest rounds whose median stands for the next one: the work of others comes and goes


@dataclass(frozen=True, slots=True)
class Outlook:
    """The rounds and seconds that are expected to follow."""

    rounds: int
    seconds: float


def outlook(rounds: Sequence[Round], candidates: Candidates) -> Outlook | None:
    """Return what is expected to follow these rounds; None while they are too few to show their spread."""
    if len(rounds) < SELECTION_ROUNDS:
        return None
    selection = [r for r in rounds if r.stage is Stage.SELECTION]
    evaluation = [r for r in rounds if r.stage is Stage.EVALUATION]
    extra = sum(r.seconds for r in selection[SELECTION_ROUNDS:])
    stays = does_load_stay(candidates, rounds)
    more = 0 if evaluation or stays else _selection_left(selection, extra)
    in_selection = more * _seconds_of(selection)
    each = _seconds_of(evaluation) if evaluation else _as_evaluation(selection)
    total = CLEAR_ROUNDS
    if not stays:
        total = _evaluation_rounds(evaluation, selection, each, extra + in_selection, candidates.cores)
    left = max(total - len(evaluation), 0)
    return Outlook(more + left, in_selection + left * each)


def _seconds_of(rounds: Sequence[Round]) -> float:
    if not rounds:
        return 0.0
    sizes = len(rounds[-1].blocks)
    return median(r.seconds / len(r.blocks) for r in rounds[-_LATEST:]) * sizes


def _as_evaluation(selection: Sequence[Round]) -> float:
    blocks = len(selection[-1].blocks)
    each = _seconds_of(selection) / blocks
    longer = BLOCK_SECONDS[Stage.EVALUATION] - BLOCK_SECONDS[Stage.SELECTION]
    return min(_EVALUATED, max(blocks, 2)) * (each + longer * (each < 2 * BLOCK_SECONDS[Stage.EVALUATION]))


def _selection_left(rounds: Sequence[Round], extra: float) -> int:
    done, seconds = len(rounds), _seconds_of(rounds)
    fewest = max(SELECTION_ROUNDS - done, 0)
    if len(rounds[-1].blocks) == 1:
        return 0
    wanted = fewest
    if done > 1:
        spread = _spread(rounds)
        # the rounds after which ratios of that spread are known finely; where rounds contradict each other, never
        fine = math.ceil((RANKS_95 * spread / FINE_HALF_WIDTH) ** 2) if math.isfinite(spread) else 1_000_000
        wanted = _FEW + fine - done
    most = math.ceil(max(SELECTION_EXTRA_SECONDS - extra, 0.0) / seconds) if seconds else 0
    return max(min(wanted, fewest + most), fewest, 0)


def half_width(spread: float, count: int) -> float:
    """Return about half of the signed-rank interval of `count` rounds: with few rounds, nearly their whole range."""
    return RANKS_95 * spread / math.sqrt(max(count - _FEW, 1))


def _evaluation_rounds(
    evaluation: Sequence[Round], selection: Sequence[Round], each: float, extra: float, cores: int
) -> int:
    """Return after how many rounds the evaluation is expected to end, by the rules of `selection._is_evaluated`."""
    rounds = [*selection, *evaluation]
    quiet_share = sum(not r.is_disturbed(cores) for r in rounds) / len(rounds)
    quiet = [r for r in evaluation if not r.is_disturbed(cores)]
    known = quiet if len(quiet) >= EVALUATION_ROUNDS else evaluation
    is_of_selection = len(known) < EVALUATION_ROUNDS / 2 and bool(selection)
    spread = _spread(selection) * _SHORTER_BLOCK if is_of_selection else _spread(known)
    done, spent = len(evaluation), sum(r.seconds for r in evaluation[EVALUATION_ROUNDS:])
    for count in range(max(done, EVALUATION_ROUNDS), done + math.ceil(EXTRA_SECONDS / max(each, 0.1)) + 1):
        own = spent + each * (count - max(done, EVALUATION_ROUNDS))
        if extra + own + each > EXTRA_SECONDS:
            return count
        if count == done or (quiet_share * count < EVALUATION_ROUNDS and own <= QUIET_EXTRA_SECONDS):
            continue  # it has already gone on from here, or waits for rounds without other work
        target = HALF_WIDTH if extra + own <= PATIENT_SECONDS else CLAIMABLE_HALF_WIDTH
        if count % LOOK_EVERY == 0 and half_width(spread, count) <= target:
            return count
    return max(done, EVALUATION_ROUNDS) + math.ceil(max(EXTRA_SECONDS - extra - spent, 0.0) / max(each, 0.1))


def _spread(rounds: Sequence[Round]) -> float:
    """Return the largest standard deviation of a ratio, over pairs of the sizes in the last round.

    A few outlying rounds do not matter. Infinite where the rounds contradict each other: no number of them makes such
    an interval narrow.
    """
    speeds = [r.speeds() for r in rounds]
    found = [0.0]
    for one, other in combinations(sorted(speeds[-1])[-3:], 2) if speeds else ():
        ratios = [each[one] - each[other] for each in speeds if one in each and other in each]
        found.append(_spread_of(ratios))
    return max(found)


def _spread_of(ratios: Sequence[float]) -> float:
    known = ratios[1:] if len(ratios) >= WITHOUT_THE_FIRST else ratios
    if len(known) < 2:
        return 0.0
    middle = median(known)
    if len(known) >= EVALUATION_ROUNDS:
        low, middle, high = quantiles(known, n=4)
        if high - low > math.log(AGREEING_SPREAD):
            return math.inf
    return DEVIATIONS_OF_MEDIAN * median(abs(ratio - middle) for ratio in known)
