"""PURE: whether the memory of a training was still in the steps that were watched, and for how many to watch it.

Of one start each step has a peak of its own. One that lies above all before it may not be the last to do so; a lower
one shows that the steps do not all compute the same, whatever the cause: layers left out, images resized.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

ROUNDING = 4096
"""One part of so many is an allocator's rounding, as of a card's blocks, or a step's loss that is kept."""
ROUNDED_BYTES, SMALL_BYTES = 4096, 2**20
"""So few bytes are, too, of a training of at least a MiB: a Trainer's log keeps them now and then."""
STATE_STEPS = 2
"""The first steps, whose memory rises in every training: they make gradients and the optimizer's state."""
VARIED_TIMES, RISING_TIMES, ROSE_TIMES = 8, 4, 2
MOST_STEPS, MOST_SECONDS = 200, 60.0
STILL_STEPS, STILL_SECONDS = 100, 3.0
"""Quick steps are watched on: images resized every 10 batches or a network that comes later are still for 5 steps."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The steps of one start whose memory was read: how many, how long one took, and whether it was still.

    `rose_at`: the last step that took more than all before; `inputs`: a step's shape, but for the batch size.
    """

    batch_size: int
    steps: int
    step_seconds: float
    is_varied: bool
    is_rising: bool
    rose_at: int = 0
    inputs: tuple[int, ...] = ()


def marked_by_inputs(starts: Collection[Watched]) -> list[Watched]:
    """Return the starts, all marked as varied where their inputs differ, as where each draws an image side once."""
    differ = len({each.inputs for each in starts if each.inputs}) > 1
    return [replace(each, is_varied=True) if differ else each for each in starts]


def is_more(peak_bytes: int, other_bytes: int) -> bool:
    """Whether a peak lies above another, beyond the allocator's rounding.

    >>> is_more(16_386, 16_384), is_more(16_389, 16_384)
    (False, True)
    """
    least = ROUNDED_BYTES if other_bytes >= SMALL_BYTES else 0
    return peak_bytes > other_bytes + max(other_bytes // ROUNDING, least)


def is_rising(peaks: Sequence[int]) -> bool:
    """Whether a step of the second half took more than all before it.

    >>> is_rising([1000, 3000, 3000, 3000, 3000]), is_rising([1000, 3000, 3000, 5000, 3000])
    (False, True)
    """
    return last_rise(peaks) > max(len(peaks) // 2, STATE_STEPS)


def last_rise(peaks: Sequence[int]) -> int:
    """Return the number of the last step that took more than all before it, counted from 1; 0 where there is none.

    >>> last_rise([1000, 3000, 3000, 5000, 3000])
    4
    """
    highest = found = 0
    for number, peak in enumerate(peaks, 1):
        found = number if is_more(peak, highest) else found
        highest = max(highest, peak)
    return found


def has_fallen(peaks: Sequence[int]) -> bool:
    """Whether a step took less than one before it; the very first is left out.

    >>> has_fallen([9000, 3000, 5000, 5000]), has_fallen([1000, 3000, 5000, 3000])
    (False, True)
    """
    return any(is_more(max(peaks[1:number]), peaks[number]) for number in range(2, len(peaks)))


def steps_to_watch(least: int, batch_size: int, starts: Collection[Watched], *, has_ranks: bool = False) -> int:
    """Return the steps to read of the next start: more where others were not still, for ranks what the time allows."""
    varied = [each.steps for each in starts if each.is_varied]
    wanted = [max(VARIED_TIMES * least, steps, MOST_STEPS * (steps >= STILL_STEPS)) for steps in varied]
    wanted += [RISING_TIMES * each.steps for each in starts if each.is_rising]
    wanted += [ROSE_TIMES * each.rose_at for each in starts if each.rose_at > least]
    if not wanted:
        return least
    nearest = min(starts, key=lambda each: abs(each.batch_size - batch_size))
    seconds = nearest.step_seconds * max(batch_size / nearest.batch_size, 1)
    affordable = int(MOST_SECONDS / seconds) if seconds and has_ranks else MOST_STEPS
    return max(least, min(max(wanted), MOST_STEPS, affordable))
