"""PURE: which batch size to try next, and when the boundary is known.

`decide` looks at every trial so far and answers the next one, or why the search is over. It keeps no state,
so a search can be stopped and taken up again from its trials.

How it finds the boundary:

1. Batch 1, to prove that the workload trains at all; then `SearchLimits.start`.
2. Geometric growth (x8) while the limit is far. Peak memory against batch size is convex and piecewise
   linear (first the optimizer step holds the peak, then the backward pass), so a line through two small
   batches aims too high: it is followed only once three trials lie on one line, or the last two reach past
   half of its prediction; before that the search goes half-way only.
3. The line through the two largest fitting trials predicts the boundary N. N fits, N+1 is tried in a
   fresh process and is refused: certified. A prediction that misses is corrected by galloping away from it,
   then by halving.

An example, a boundary of 528 on a straight line (sizes in order, ``x`` marks a refusal)::

    1  16  128  528  529x

A refusal counts for the certificate only from a fresh process: what ran before leaves the allocator
fragmented. A refusal that a later trial of the same size disproves is dropped. The probes it cost may be more
than the bound of 4 + 2 log2(N) allows; from there on the search gallops, for caution has nothing left to save.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

GROWTH = 8
CLOSE = 0.85  # two sizes nearer to each other than this ratio are no basis for a line: noise decides its slope
COLLINEAR_TOLERANCE = 0.005  # three trials lie on a line within this share of the rise between them
NEAR = 0.02  # a correction up to this share of the size is small
FAR = 32  # a straight line is extrapolated at most to this multiple of its largest size
PATIENCE = 2  # probes allowed beyond 2 log2(size): the bound is 4, less the first try and the confirmation


@dataclass(frozen=True, slots=True)
class Trial:
    """A batch size that was executed. `memory_bytes` is known where it fitted."""

    batch_size: int
    fits: bool
    memory_bytes: int | None = None
    fresh_process: bool = False


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """What limits the search: the available bytes, the first size tried after 1, the largest size allowed.

    `assumed`: (size, bytes) pairs of an estimate below the largest fit, which steer lines and count as no test.
    """

    memory_bytes: int
    start: int = 16
    maximum: int = 65_536
    assumed: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Try:
    """Run this size next; in a process that has run nothing else, if `fresh_process`."""

    batch_size: int
    fresh_process: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """The search is over. `refused` is `largest` + 1 and was refused; None when `maximum` was reached."""

    largest: int
    refused: int | None


def decide(trials: Sequence[Trial], limits: SearchLimits) -> Try | Found:
    """Decide on the next size to run, or on the boundary. Sizes are in 1..`limits.maximum`."""
    fitted = sorted({t.batch_size for t in trials if t.fits})
    low = fitted[-1] if fitted else 0
    refused = sorted({t.batch_size for t in trials if not t.fits and t.batch_size > low})
    if low == 0 and not refused:
        return Try(1)
    if not refused:
        return _grow(trials, fitted, limits) if low < limits.maximum else Found(low, None)
    if refused[0] > low + 1:
        return _close_in(trials, fitted, refused, limits)
    if any(t.fresh_process and not t.fits and t.batch_size == refused[0] for t in trials):
        return Found(low, refused[0])
    return Try(refused[0], fresh_process=True)


def _grow(trials: Sequence[Trial], fitted: list[int], limits: SearchLimits) -> Try:
    low = fitted[-1]
    if low < limits.start:
        return _try(limits.start, low, limits)
    halvings_left = math.floor(PATIENCE + 2 * math.log2(low) - len(trials))
    is_past_bound = halvings_left < -1
    affordable = limits.maximum if is_past_bound else low + int(2**halvings_left)
    line = _line(trials, limits)
    is_slow = len(trials) > math.log2(low) + 0.5 and not is_past_bound and not limits.assumed
    if line is None or is_slow:
        size = low * GROWTH
    elif line.meets_limit_at <= low or low - fitted[-2] == 1:
        size = max(low + _step_up(trials, fitted, limits), line.meets_limit_at)
    elif line.is_near or (line.is_straight and line.meets_limit_at <= low * FAR):
        return _try(line.meets_limit_at, low, limits)
    else:
        half = line.meets_limit_at // 2  # most likely fits, and makes the next line a better one
        size = min(low * GROWTH, half if half > low else (low + line.meets_limit_at) // 2)
    return _try(min(size, affordable), low, limits)


def _close_in(trials: Sequence[Trial], fitted: list[int], refused: list[int], limits: SearchLimits) -> Try:
    low, high = fitted[-1] if fitted else 0, refused[0]
    middle = math.isqrt(low * high) if high > 4 * low else (low + high) // 2
    line = _line(trials, limits)
    is_out_of_patience = len(trials) + math.ceil(math.log2(high - low)) > PATIENCE + 2 * math.log2(max(low, 1))
    if line is None or is_out_of_patience or (line.meets_limit_at >= high and not line.is_near):
        return _try(middle, low, limits)
    if line.meets_limit_at <= low:
        size = low + _step_up(trials, fitted, limits)
    else:
        is_a_new_line = trials[-1].fits and line.meets_limit_at < high
        size = line.meets_limit_at if is_a_new_line else min(line.meets_limit_at, high - _step_down(refused))
    return _try(size if low < size < high else middle, low, limits)


def _step_up(trials: Sequence[Trial], fitted: list[int], limits: SearchLimits) -> int:
    """Return how far to go above the largest fitting size: 1, to certify it; wider each time its line is refuted."""
    low, distance = fitted[-1], fitted[-1] - fitted[-2]
    earlier = _line([t for t in trials if t.batch_size != low], limits)
    if earlier is None or earlier.meets_limit_at >= low or distance > max(2, low * NEAR / 4):
        return 1
    return max(2 * distance, round(low * NEAR / 10))


def _step_down(refused: list[int]) -> int:
    distance = refused[1] - refused[0] if len(refused) > 1 else refused[0]
    if distance <= max(2, refused[0] * NEAR * 4):
        return 2 * distance
    return max(1, round(refused[0] * NEAR / 2))


def _try(size: int, low: int, limits: SearchLimits) -> Try:
    """Return `size` within bounds; `low` + 1 in a fresh process, because its refusal would be the certificate."""
    size = min(max(size, low + 1), limits.maximum)
    return Try(size, fresh_process=size == low + 1 and low > 1)


@dataclass(frozen=True, slots=True)
class _Line:
    meets_limit_at: int
    is_near: bool
    """Whether both trials are near the limit: a bend of the curve below them does no harm."""
    is_straight: bool
    """Whether three trials lie on it."""


def _line(trials: Sequence[Trial], limits: SearchLimits) -> _Line | None:
    """Return the line through the largest fitting trial and one below it; None while memory does not rise.

    The one below is the closest that needs no extension beyond twice the line's length: farther, slope is noise.
    """
    measured = {t.batch_size: t.memory_bytes for t in trials if t.fits and t.memory_bytes is not None}
    *below, (size, used) = sorted({**dict(limits.assumed), **measured}.items()) or [(0, 0)]
    lower = [p for p in below if p[1] < used]
    line = None
    for lower_size, lower_used in reversed(lower):
        length = size - lower_size
        ahead = int((limits.memory_bytes - used) * length / (used - lower_used))
        if line is None or lower_size > size * CLOSE or ahead <= 2 * length:
            is_near = ahead <= length and lower_size * 2.5 >= size
            line = _Line(min(size + ahead, limits.maximum), is_near, _is_straight([*below, (size, used)]))
        if ahead <= 2 * length:
            break
    return line


def _is_straight(points: list[tuple[int, int]]) -> bool:
    if len(points) < 3:
        return False
    (b1, m1), (b2, m2), (b3, m3) = points[-3:]
    expected = m1 + (m2 - m1) * (b3 - b1) / (b2 - b1)
    return m3 > m1 and abs(m3 - expected) <= COLLINEAR_TOLERANCE * (m3 - m1)


def next_soak_size(trials: Sequence[Trial], largest: int) -> int | None:
    """Return which size to soak next, given the soaks so far; None once the largest surviving size is known.

    From `largest` down in doubling steps, then by halves, so that the answer is a pair: survived, and did not.
    """
    low = max((t.batch_size for t in trials if t.fits), default=0)
    high = min((t.batch_size for t in trials if not t.fits), default=largest + 1)
    if high - low <= 1:
        return None
    if high > largest or low > 0:
        return largest if high > largest else (low + high) // 2
    return max(high - (1 << (len(trials) - 1)), 1)


def curve_sizes(tried: Sequence[int], largest: int, most: int = 6) -> list[int]:
    """Return up to `most` sizes below `largest` that fill the widest gaps (as ratios) between those tried."""
    sizes = sorted({size for size in tried if size <= largest} | {largest})
    added: list[int] = []
    while len(added) < most:
        gaps = [(upper / lower, lower, upper) for lower, upper in zip(sizes, sizes[1:], strict=False)]
        ratio, lower, upper = max(gaps, default=(1.0, 0, 0))
        if ratio <= 2:
            break
        middle = 2 ** round(math.log2(math.sqrt(lower * upper)))
        added.append(middle)
        sizes = sorted([*sizes, middle])
    return sorted(added)
