"""PURE: micro-batch x accumulation pairs that keep a wanted global batch exactly.

A global batch is what one optimizer step sees: micro-batch x accumulation steps x devices. It is never rounded: where
no pair makes it with a micro-batch worth using, the nearest global batches that have one are named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from ..errors import SpecError
from ..result import Point

SENSIBLE_SHARE = 0.5
"""Of the recommended micro-batch: a smaller one leaves so much speed unused that another global batch is named."""
MAX_GLOBAL_BATCH_SIZE, MAX_DEVICES = 16_777_216, 65_536


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """What is known of the memory: the measured sizes, what they may take, and how much all gradients take.

    `gradients_bytes` None: not known, as of adapters.
    """

    points: Mapping[int, Point]
    limit_bytes: int
    gradients_bytes: int | None

    def of(self, batch_size: int) -> int | None:
        """Return what this size takes at most: its own memory, or that on the line between its measured neighbours.

        Memory against batch size is convex, so it lies below that line.
        """
        known = {size: point.memory_bytes for size, point in self.points.items() if point.memory_bytes is not None}
        above = min((size for size in known if size >= batch_size), default=None)
        below = max((size for size in known if size <= batch_size), default=above)
        if above is None or below is None:
            return None
        share = (batch_size - below) / (above - below) if above > below else 0.0
        return math.ceil(known[below] + share * (known[above] - known[below]))

    def holds_all_gradients_too(self, batch_size: int) -> bool | None:
        """Say whether this size fits together with the gradients of earlier micro-batches; None where not known.

        With accumulation they stay in memory through the next forward pass. A measured step has cleared them by then,
        so the memory rises by all of them at most.
        """
        taken = self.of(batch_size)
        if taken is None or self.gradients_bytes is None:
            return None
        return True if taken + self.gradients_bytes <= self.limit_bytes else None


@dataclass(frozen=True, slots=True)
class Pair:
    """One way to make the global batch. The speed is the measured one of the micro-batch, None where there is none.

    `fits` is None where accumulation needs memory that was not measured.
    """

    micro_batch_size: int
    accumulation_steps: int
    fits: bool | None
    samples_per_second: float | None = None
    samples_per_second_low: float | None = None
    samples_per_second_high: float | None = None


@dataclass(frozen=True, slots=True)
class GlobalBatch:
    """The pairs of a global batch, largest micro-batch first.

    `nearest` are the next smaller and larger global batches with a sensible pair, where this one has none.
    """

    size: int
    devices: int
    pairs: tuple[Pair, ...]
    nearest: tuple[int, ...] = ()

    @property
    def is_sensible(self) -> bool:
        return not self.nearest

    @property
    def chosen(self) -> Pair | None:
        """The pair that the code uses: the largest micro-batch that is known to fit, else the largest; None if none."""
        if not self.is_sensible:
            return None
        return next((pair for pair in self.pairs if pair.fits), self.pairs[0])


def check_global_batch(size: int, devices: int) -> None:
    """Raise SpecError for a number that is out of range."""
    if not 1 <= size <= MAX_GLOBAL_BATCH_SIZE:
        raise SpecError("global_batch_size", f"{size} is out of range; from 1 to {MAX_GLOBAL_BATCH_SIZE:,}")
    if not 1 <= devices <= MAX_DEVICES:
        raise SpecError("devices", f"{devices} is out of range; from 1 to {MAX_DEVICES:,}")


def plan_global_batch(size: int, devices: int, recommended: int, memory: MeasuredMemory) -> GlobalBatch:
    """Return the pairs that make exactly `size`, with micro-batches up to the recommended size."""
    check_global_batch(size, devices)
    pairs = tuple(
        _pair(micro, size // devices // micro, memory) for micro in _micro_batches(size, devices, recommended)
    )
    if pairs and _is_sensible(pairs[0].micro_batch_size, size, devices, recommended):
        return GlobalBatch(size, devices, pairs)
    return GlobalBatch(size, devices, pairs, _nearest(size, devices, recommended))


def _micro_batches(size: int, devices: int, recommended: int) -> list[int]:
    """Return the divisors of a device's part up to the recommended size, largest first; none if that is no whole."""
    part, rest = divmod(size, devices)
    return [] if rest else [micro for micro in range(min(recommended, part), 0, -1) if part % micro == 0]


def _is_sensible(micro: int, size: int, devices: int, recommended: int) -> bool:
    return micro >= SENSIBLE_SHARE * min(recommended, size // devices)


def _nearest(size: int, devices: int, recommended: int) -> tuple[int, ...]:
    smaller = (part * devices for part in range((size - 1) // devices, 0, -1))
    larger = (part * devices for part in count(size // devices + 1))
    found = (
        next((each for each in sizes if _has_sensible_pair(each, devices, recommended)), None)
        for sizes in (smaller, larger)
    )
    return tuple(each for each in found if each is not None)


def _has_sensible_pair(size: int, devices: int, recommended: int) -> bool:
    part = size // devices
    largest = min(recommended, part)
    least = -(-largest // 2)
    return any(part % micro == 0 for micro in range(largest, least - 1, -1))


def _pair(micro: int, steps: int, memory: MeasuredMemory) -> Pair:
    point = memory.points.get(micro)
    fits = True if steps == 1 else memory.holds_all_gradients_too(micro)
    if point is None:
        return Pair(micro, steps, fits)
    speed = (point.samples_per_second, point.samples_per_second_low, point.samples_per_second_high)
    return Pair(micro, steps, fits, *speed)
