"""PURE: the search for the boundary, guided by the memory that an estimate expects.

`decide` does what `unguided.decide` does, but takes an `ExpectedMemory` too. The estimate only saves probes: every size
of the result is executed, and the certificate is the same pair.

1. Batch 1, which also shows the error of the estimate at the start.
2. A leap to the size that should just fit, less the estimate's own margin.
3. What that leap measured corrects the estimate by a factor: batch size x factor is the size for which the estimate
   expects the measured bytes. The corrected line to the boundary stands in for smaller sizes that were not run, and
   the search follows it like a line through probes.
4. A leap that is refused is repeated at half its size. If that is refused too, or the factor is outside `TRUSTED`, the
   estimate is dropped: the plain search goes on, without trying again what is already known to be refused.

Examples, for a boundary of 528 on a straight line (sizes in order, ``x`` marks a refusal)::

    1  528  529x               an estimate that is exact and knows it (margin 0)
    1  518  528  529x          one within its margin of 2 %
    1  259  527  528  529x     half of what fits, so twice the bytes for a sample
    1  1035x  517  528  529x   twice what fits
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from . import unguided
from .unguided import Found, SearchLimits, Trial, Try

TRUSTED = (0.4, 2.5)  # correction factors with which the estimate's shape is still used
AIMS = 3  # sizes chosen by the estimate alone; after them the line through the probes is more accurate
SMALL_LEAP = 4  # up to this batch size the plain search is as fast


@dataclass(frozen=True, slots=True)
class ExpectedMemory:
    """The memory that an estimate expects: `memory_bytes` of a size, whose rise may be too low by a share of `margin`.

    `fits` tells whether a size trains within a limit in bytes, which it may although `memory_bytes` are more: a caching
    allocator at its limit releases what it holds unused.
    """

    memory_bytes: Callable[[int], int]
    margin: float = 0.02
    fits: Callable[[int, int], bool] | None = None


def decide(trials: Sequence[Trial], limits: SearchLimits, expected: ExpectedMemory | None) -> Try | Found:
    """Decide on the next size to run, or on the boundary; without an expectation as `unguided.decide` does."""
    low = max((t.batch_size for t in trials if t.fits), default=0)
    fits = {t.batch_size: t.memory_bytes for t in trials if t.fits and t.memory_bytes is not None}
    if expected is None or low not in fits:
        return unguided.decide(trials, limits)
    leaps = _refused_leaps(trials)
    if len(leaps) == 2:
        return _unguided_step(trials, leaps, limits)
    corrected = _corrected(fits, expected, limits.memory_bytes)
    if corrected is None:
        return unguided.decide(trials, limits)
    target = corrected.largest_within(limits, low, expected.margin if len(fits) == 1 else 0.0)
    refused = min((t.batch_size for t in trials if not t.fits and t.batch_size > low), default=None)
    if refused is None and low < limits.maximum and len(fits) <= AIMS:
        return Try(max(target, low + 1), fresh_process=target <= low + 1)
    if leaps and len(fits) == 1 and refused == leaps[0].batch_size:
        return Try(refused // 2)
    assumed = _line_to(target, limits, low, fits[low]) if target > low else corrected.below(low)
    return unguided.decide(trials, replace(limits, start=1, assumed=assumed))


def _line_to(target: int, limits: SearchLimits, low: int, low_bytes: int) -> tuple[tuple[int, int], ...]:
    """Return two sizes below `low`, on the line that passes through `low` and meets the limit right after `target`."""
    slope = (limits.memory_bytes - low_bytes) / (target + 0.5 - low)
    sizes = (size for size in (low // 2, low * 3 // 4) if 1 <= size < low)
    return tuple((size, round(low_bytes - slope * (low - size))) for size in sizes)


def _refused_leaps(trials: Sequence[Trial]) -> list[Trial]:
    """Return the leap and its half if they were refused: the refusals before any size above 1 fitted."""
    before = itertools.takewhile(lambda t: not t.fits or t.batch_size == 1, trials)
    leaps = [t for t in before if not t.fits and t.batch_size > SMALL_LEAP]
    is_halved = len(leaps) > 1 and leaps[1].batch_size == leaps[0].batch_size // 2
    return leaps[: 2 if is_halved else 1]


def _unguided_step(trials: Sequence[Trial], leaps: list[Trial], limits: SearchLimits) -> Try | Found:
    seen = [t for t in trials if t not in leaps]
    while isinstance(step := unguided.decide(seen, limits), Try):
        known = next((t for t in reversed(leaps) if t.batch_size <= step.batch_size and t not in seen), None)
        if known is None:
            break
        is_above = known.batch_size < step.batch_size
        seen.append(Trial(step.batch_size, fits=False) if is_above else known)
    return step


@dataclass(frozen=True, slots=True)
class _Corrected:
    """An expectation with a constant added and the batch size scaled: mostly its bytes per sample are wrong."""

    expected: ExpectedMemory
    stretch: float
    shift_bytes: int

    def memory_bytes(self, batch_size: int) -> float:
        at = max(batch_size * self.stretch, 1.0)
        whole = math.floor(at)
        bytes_there: float = self.expected.memory_bytes(whole)
        if at > whole:
            bytes_there += (self.expected.memory_bytes(whole + 1) - bytes_there) * (at - whole)
        return bytes_there + self.shift_bytes

    def largest_within(self, limits: SearchLimits, low: int, margin: float) -> int:
        """Find the largest size that should fit if its rise over `low` were `margin` more; `low` if none above does."""
        base = self.memory_bytes(low)

        def fits(size: int) -> bool:
            needed_bytes = self.memory_bytes(size)
            spare_bytes = limits.memory_bytes - margin * (needed_bytes - base)
            if needed_bytes <= spare_bytes or self.expected.fits is None:
                return needed_bytes <= spare_bytes
            return self.expected.fits(math.ceil(size * self.stretch), int(spare_bytes) - self.shift_bytes)

        return _last(fits, low, limits.maximum)

    def below(self, low: int) -> tuple[tuple[int, int], ...]:
        return tuple((size, int(self.memory_bytes(size))) for size in (low // 2, low * 3 // 4) if 1 <= size < low)


def _corrected(fits: dict[int, int], expected: ExpectedMemory, limit_bytes: int) -> _Corrected | None:
    """Correct the expectation by the measurements; None where they are too far from it.

    Sizes expected above the limit do not correct it: near the limit an allocator takes what is left, maybe less.
    """
    smallest, low = min(fits), max(fits)
    shift_bytes = fits[smallest] - expected.memory_bytes(smallest)
    free = max(size for size in fits if size == smallest or expected.memory_bytes(size) + shift_bytes <= limit_bytes)
    stretch = 1.0 if free == smallest else _size_with(expected, fits[free] - shift_bytes, free) / free
    if not TRUSTED[0] <= stretch <= TRUSTED[1]:
        return None
    corrected = _Corrected(expected, stretch, shift_bytes)
    missed_bytes = fits[low] - round(corrected.memory_bytes(low))
    is_held_down = corrected.memory_bytes(low) > limit_bytes
    return corrected if is_held_down else replace(corrected, shift_bytes=shift_bytes + missed_bytes)


def _size_with(expected: ExpectedMemory, wanted_bytes: int, near: int) -> float:
    """Return the size expected to need exactly `wanted_bytes`: `near` if it does, a fraction between two sizes."""
    expect = expected.memory_bytes
    if expect(near) == wanted_bytes:
        return near
    if expect(near) < wanted_bytes:
        whole = _last(lambda size: expect(size) < wanted_bytes, near, math.ceil(near * TRUSTED[1]) + 1)
    else:
        whole = _last_below(lambda size: expect(size) <= wanted_bytes, near)
    below, above = expect(whole), expect(whole + 1)
    return whole + ((wanted_bytes - below) / (above - below) if below <= wanted_bytes < above else 0.0)


def _last(holds: Callable[[int], bool], low: int, maximum: int) -> int:
    step = 1
    while low + step < maximum and holds(low + step):
        low, step = low + step, 2 * step
    return _between(holds, low, min(low + step, maximum + 1))


def _last_below(holds: Callable[[int], bool], high: int) -> int:
    step = 1
    while high - step > 1 and not holds(high - step):
        high, step = high - step, 2 * step
    return _between(holds, max(high - step, 1), high)


def _between(holds: Callable[[int], bool], low: int, high: int) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
