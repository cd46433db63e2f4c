"""PURE: what a measurement still has to do, and how long that is expected to take, from the seconds of its own probes.

Nothing is claimed before two probes have ended, nor while a search has neither an estimate nor a refused size to aim
at. A search with a misleading estimate takes longer: the figure is no bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import linear_regression

from ...facts.result import Outcome, Probe, Purpose
from ...facts.speed_rounds import Stage
from ...race.speed.selection import BLOCK_SECONDS, EVALUATION_ROUNDS, SELECTION_ROUNDS
from ...search.guided import AIMS
from ...search.reserve import EDGE_PROBES
from ...search.unguided import curve_sizes
from ...settings.spec import MEMORY_STEPS, SOAK_STEPS

PROBES_NEEDED = 2
PLAIN_SHARE = 0.6  # time of an unmeasured step / time of the same step with its memory measured
NEAR_SHARE = 0.9  # a fit at this share of the estimated boundary shows that the estimate is about right
EXTRA_ROUNDS_SECONDS = 30.0
"""Expected seconds of the rounds beyond the fewest, until a round shows how steady the machine is: half the maximum."""
REMAIN_SHARE = 0.5  # share of the candidates left from the second round of the selection on
EVALUATED = 2.3  # mean number of sizes in an evaluation round: today's, recommended, fastest; two may be the same
EXPLAINING_SECONDS = 1.0  # seconds beyond those of a new process and the steps
LEAST_SHARE = 0.1  # share of a part that counts as left while it takes longer than expected

SEARCHED = (Purpose.SEARCH, Purpose.CONFIRM)
_MEASURING = ("searching", "soaking", "curve")


@dataclass(frozen=True, slots=True)
class SoFar:
    """A run under way. `expected` is the estimate's largest size, `open_seconds` what starting a worker takes, or 0.

    `under_way_seconds` is of the current probe, or phase without one; None between two starts of a tuning.
    """

    phase: str
    probes: Sequence[Probe]
    current_batch_size: int
    soak_steps: int = SOAK_STEPS
    compares_speed: bool = True
    expected: int | None = None
    open_seconds: float = 0.0
    under_way_seconds: float | None = 0.0
    timing_seconds_left: float | None = None


def seconds_left(so_far: SoFar) -> float | None:
    """Return the expected seconds to the end of the run; None before its probes tell."""
    step_seconds = _step_seconds(so_far.probes)
    if len(so_far.probes) < PROBES_NEEDED or step_seconds is None:
        return so_far.timing_seconds_left if so_far.phase == "timing" else None
    aim = _aim(so_far.probes, so_far.expected, is_searching=so_far.phase == "searching")
    if aim is None:
        return None
    explaining = so_far.open_seconds + MEMORY_STEPS * step_seconds(aim.size) + EXPLAINING_SECONDS
    if so_far.phase == "explaining":
        return less(explaining, so_far.under_way_seconds, explaining)
    timing = 0.0
    if so_far.compares_speed:
        sizes = {*curve_sizes([1], aim.size), min(so_far.current_batch_size, aim.size), aim.size}
        timing = so_far.open_seconds + timing_seconds(sizes, so_far.current_batch_size, so_far.probes)
    if so_far.phase == "timing":
        known = so_far.timing_seconds_left
        return explaining + (less(timing, so_far.under_way_seconds, timing) if known is None else known)
    if so_far.phase not in _MEASURING:
        return None
    whole = MEMORY_STEPS * step_seconds(aim.size)
    probing = whole * aim.probes + sum(MEMORY_STEPS * step_seconds(size) for size in _curve_left(so_far, aim.size))
    if all(p.purpose is not Purpose.SOAK for p in so_far.probes):
        probing += so_far.soak_steps * PLAIN_SHARE * step_seconds(aim.size) + so_far.open_seconds
    if all(p.purpose is not Purpose.CURVE or p.batch_size <= NEAR_SHARE * aim.size for p in so_far.probes):
        probing += whole  # the largest size with the reserve
    return less(probing, so_far.under_way_seconds, min(whole, probing)) + timing + explaining


def less(seconds: float, spent: float | None, part: float) -> float:
    """Subtract the seconds that the current part has spent; at least `LEAST_SHARE` of that part stays left."""
    return seconds - min(spent or 0.0, (1 - LEAST_SHARE) * part)


def share_of_phase(so_far: SoFar) -> float:
    """Return the share of the current phase that is done, by the probes still expected; 0 where unknown."""
    if so_far.phase == "searching":
        aim = _aim(so_far.probes, so_far.expected, is_searching=True)
        done = sum(p.purpose in SEARCHED for p in so_far.probes)
        return done / (done + aim.probes + 1) if aim and done else 0.0
    if so_far.phase == "curve" and (largest := bracket(so_far.probes)[0]):
        done = sum(p.purpose is Purpose.CURVE for p in so_far.probes)
        expected = done + len(_curve_left(so_far, largest)) + EDGE_PROBES
        return done / expected
    return 0.0


@dataclass(frozen=True, slots=True)
class _Aim:
    """Where the boundary is expected, and with how many more probes the search finds it; one of them is refused."""

    size: int
    probes: float


def _step_seconds(probes: Iterable[Probe]) -> Callable[[int], float] | None:
    """Return the seconds of a measured step by batch size, on a line through the known ones; None where none trained.

    The first probe also loads libraries: its steps count for no more than those of the next larger size.
    """
    trained = [p for p in probes if p.fits and p.steps and p.wall_seconds and p.purpose is not Purpose.SOAK]
    if not trained:
        return None
    known = {p.batch_size: p.wall_seconds / p.steps for p in trained}
    first, later = trained[0].batch_size, sorted(known)[1:]
    if later and first == min(known):
        known[first] = min(known[first], known[later[0]])
    least = min(known.values())
    if not later:
        return lambda size: least * max(size / first, 1.0)
    slope, start = linear_regression(list(known), list(known.values()))
    return lambda size: max(start + slope * size, least)


def bracket(probes: Sequence[Probe]) -> tuple[int, int | None]:
    """Return the largest size that trained, 0 where none did, and the smallest refused above it."""
    low = max((p.batch_size for p in probes if p.fits), default=0)
    above = (p.batch_size for p in probes if p.outcome is not Outcome.FITS and p.batch_size > low)
    return low, min(above, default=None)


def _aim(probes: Sequence[Probe], expected: int | None, *, is_searching: bool) -> _Aim | None:
    """Return where the search is heading; None while that is unknown."""
    low, refused = bracket(probes)
    if not is_searching or refused == low + 1:
        return _Aim(low, 0) if low else None
    if refused is not None:
        halvings = math.log2(refused - low)
        return _Aim(low or refused // 2 or 1, min(halvings, 1 + halvings / 2) + 1)  # lines meet the limit sooner
    if expected is None or expected < low:
        return None
    if expected == low:
        return _Aim(low, 1)
    has_come_near = low >= NEAR_SHARE * expected
    return _Aim(expected, 2 if has_come_near else (2 + AIMS) / 2)


def _curve_left(so_far: SoFar, largest: int) -> list[int]:
    fitted = {p.batch_size for p in so_far.probes if p.fits}
    searched = sorted(p.batch_size for p in so_far.probes if p.fits and p.purpose in SEARCHED)
    wanted = {*curve_sizes(searched, largest), *([so_far.current_batch_size] * (so_far.current_batch_size <= largest))}
    return sorted(wanted - fitted)


def timing_seconds(sizes: Iterable[int], current: int, probes: Iterable[Probe]) -> float:
    """Return the expected seconds of comparing these sizes' speeds, with half of the extra rounds; 0 if unknown."""
    step_seconds, compared = _step_seconds(probes), sorted(sizes, reverse=True)
    if step_seconds is None:
        return 0.0

    def block(stage: Stage, size: int) -> float:
        each = PLAIN_SHARE * step_seconds(size)  # one to warm up, then at least one
        return each + max(BLOCK_SECONDS[stage], each)

    first = sum(block(Stage.SELECTION, size) for size in compared)
    pair = [block(Stage.EVALUATION, size) for size in (min(current, compared[0]), compared[0])]
    each = EVALUATED * sum(pair) / len(pair)
    extra = max(EXTRA_ROUNDS_SECONDS - each / 2, 0.0)  # no round begins that may end too late
    return first * (1 + REMAIN_SHARE * (SELECTION_ROUNDS - 1)) + EVALUATION_ROUNDS * each + extra
