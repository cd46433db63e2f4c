"""PURE: which batch size to start a command with next, so that the boundary takes few starts.

A start costs the whole way to its first step, and many scripts cannot even train batch 1. So the search begins at a
size the user knows, and goes at once to where a line from what is held between the steps, about batch 0, meets the
limit, but never far beyond: a size above the limit costs a start, too. Then it is that of `search.unguided`. On a CPU a
refused size has run to its end, so its memory is known, and the line goes through both sides of the limit. Two such
sizes also tell what was held after each change within a step. Where both steps changed equally often, each value
follows a line of its own, and the first that meets the limit is the boundary: it only remains to be proven.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....search.unguided import CLOSE, FAR, GROWTH, Found, SearchLimits, Trial, decide

FLAT = 0.05  # a rise over the resting memory below this share tells little of the slope
STRAIGHT_ON = 3  # after three wrong predictions the curve is dropped, and a straight line is followed
CURVES_ON = 4  # after so many starts curves have not told the boundary, and are dropped
STEP_DOWN = 4  # where the very first size is refused, and nothing is known of its memory


@dataclass(frozen=True, slots=True)
class Start:
    """A started size: its peak if it ran to its end, its bytes between steps, and after each allocation of a step."""

    batch_size: int
    fits: bool
    memory_bytes: int | None = None
    resting_bytes: int | None = None
    curve: Sequence[int] = ()


def next_size(
    starts: Sequence[Start], *, memory_bytes: int, first: int, maximum: int, measures_refused: bool = False
) -> int | Found:
    """Return the next size, up to `maximum`, or the search's end; `measures_refused`: refused sizes show their peak."""
    if not starts:
        return min(first, maximum)
    fitted = sorted((s for s in starts if s.fits), key=lambda s: s.batch_size)
    low = fitted[-1] if fitted else None
    lowest = low.batch_size if low else 0
    high = min((s for s in starts if not s.fits and s.batch_size > lowest), key=lambda s: s.batch_size, default=None)
    if high is not None and high.batch_size == lowest + 1:
        return Found(lowest, high.batch_size)
    if (size := _size_by_curves(starts, lowest, high, memory_bytes, maximum)) is not None:
        return size
    if low is None:
        assert high is not None
        aim = _meets(_at_rest(high), high, memory_bytes)
        return max(1, min(aim or high.batch_size // STEP_DOWN, high.batch_size - 1))
    if high is None and lowest < maximum and len(starts) <= (STRAIGHT_ON if measures_refused else 1):
        aim = _meets(fitted[-2] if len(fitted) > 1 else _at_rest(low), low, memory_bytes)
        if aim is not None:
            is_flat = (low.memory_bytes or 0) < (low.resting_bytes or 0) * (1 + FLAT)
            furthest = lowest * (GROWTH if is_flat and not measures_refused else FAR)
            return min(max(aim, lowest + 1), furthest, maximum)
    if high is not None and (aim := _meets(low, high, memory_bytes)) is not None and starts[-1] is high:
        return max(lowest + 1, min(aim, high.batch_size - 1))
    trials = [Trial(s.batch_size, s.fits, s.memory_bytes if s.fits else None, fresh_process=True) for s in starts]
    step = decide(trials, SearchLimits(memory_bytes, start=1, maximum=maximum))
    return step if isinstance(step, Found) else step.batch_size


def is_within_reach(size: int, starts: Sequence[Start], memory_bytes: int) -> bool:
    """Whether `size` should take at most half of the memory left: the line aims high where the curve bends up."""
    fitted = [s for s in starts if s.fits]
    if not fitted or len(fitted) < len(starts):
        return False
    low = max(fitted, key=lambda s: s.batch_size)
    aim = _meets(_at_rest(low), low, memory_bytes)
    return aim is not None and 2 * size <= aim


def _size_by_curves(
    starts: Sequence[Start], lowest: int, high: Start | None, limit_bytes: int, maximum: int
) -> int | None:
    """Return the boundary by the curves of two sizes, or the size above; None where curves err, or all is proven."""
    measured = sorted((s for s in starts if s.curve), key=lambda s: s.batch_size)
    smaller = [s for s in measured if s.batch_size <= measured[-1].batch_size * CLOSE]
    aim = _meets_curves(smaller[-1], measured[-1], limit_bytes) if smaller else None
    most = min(high.batch_size - 1 if high else lowest * FAR, maximum)
    if aim is None or len(starts) > CURVES_ON or lowest >= most or aim < lowest or (high and aim >= high.batch_size):
        return None
    return max(lowest + 1, min(aim, most))


def _meets_curves(first: Start, second: Start, limit_bytes: int) -> int | None:
    """Return the largest size whose curve keeps the limit; None: no comparable values rise; 0: none would keep it."""
    if len(first.curve) != len(second.curve):
        return None
    pairs = list(zip(first.curve, second.curve, strict=True))
    if any(limit_bytes < more <= used for used, more in pairs):
        return 0
    sizes = second.batch_size - first.batch_size
    meets = (first.batch_size + (limit_bytes - used) * sizes // (more - used) for used, more in pairs if more > used)
    return min(meets, default=None)


def _at_rest(start: Start) -> Start:
    return Start(0, fits=True, memory_bytes=start.resting_bytes)


def _meets(first: Start, second: Start, limit_bytes: int) -> int | None:
    """Return the largest size that should fit by the line through both; None where it does not rise or is not known."""
    if first.memory_bytes is None or second.memory_bytes is None or second.memory_bytes <= first.memory_bytes:
        return None
    sizes, used = second.batch_size - first.batch_size, second.memory_bytes - first.memory_bytes
    return first.batch_size + int((limit_bytes - first.memory_bytes) * sizes / used)
