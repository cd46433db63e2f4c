"""PURE: the pairs of micro-batch x accumulation for exactly a global batch, or the nearest batches with a pair."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from ..errors import SpecError
from ..facts.result import Point
from ..facts.stats import memory_between

SENSIBLE_SHARE = 0.5
"""Share of the recommended micro-batch. A smaller one wastes so much speed that another global batch is suggested."""
MAX_GLOBAL_BATCH_SIZE, MAX_DEVICES = 16_777_216, 65_536


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """The measured memory by size, the bytes allowed, and those of all gradients: None if unknown, as of adapters."""

    points: Mapping[int, Point]
    limit_bytes: int
    gradients_bytes: int | None

    def of(self, batch_size: int) -> int | None:
        """Return what this size takes at most, by its measured memory or that of its neighbours."""
        known = {size: point.memory_bytes for size, point in self.points.items() if point.memory_bytes is not None}
        taken = memory_between(known, batch_size)
        return None if taken is None else math.ceil(taken)

    def holds_all_gradients_too(self, batch_size: int) -> bool | None:
        """Whether this size fits with the gradients of earlier micro-batches; None where that is unknown.

        A measured step clears them before its forward pass, so accumulation adds at most all of them.
        """
        taken = self.of(batch_size)
        if taken is None or self.gradients_bytes is None:
            return None
        return True if taken + self.gradients_bytes <= self.limit_bytes else None


@dataclass(frozen=True, slots=True)
class BatchPair:
    """One way to make the global batch. The speed is the measured one of the micro-batch, None where there is none.

    `fits` is None where accumulation needs memory in addition to what was measured.
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
    pairs: tuple[BatchPair, ...]
    nearest: tuple[int, ...] = ()

    @property
    def is_sensible(self) -> bool:
        return not self.nearest

    @property
    def chosen(self) -> BatchPair | None:
        """The pair that the code uses: the largest micro-batch known to fit, else the largest; None without pairs."""
        if not self.is_sensible:
            return None
        return next((pair for pair in self.pairs if pair.fits), self.pairs[0])


def plan_global_batch(size: int, devices: int, recommended: int, memory: MeasuredMemory) -> GlobalBatch:
    """Return the pairs that make exactly `size`, with micro-batches up to the recommended size. Raises SpecError."""
    if not 1 <= size <= MAX_GLOBAL_BATCH_SIZE:
        raise SpecError("global_batch_size", f"{size} is out of range; from 1 to {MAX_GLOBAL_BATCH_SIZE:,}")
    if not 1 <= devices <= MAX_DEVICES:
        raise SpecError("devices", f"{devices} is out of range; from 1 to {MAX_DEVICES:,}")
    part, rest = divmod(size, devices)
    divisors = [] if rest else [micro for micro in range(min(recommended, part), 0, -1) if part % micro == 0]
    pairs = tuple(_pair(micro, part // micro, memory) for micro in divisors)
    if pairs and _has_sensible_pair(part, recommended):
        return GlobalBatch(size, devices, pairs)
    around = range((size - 1) // devices, 0, -1), count(part + 1)
    found = (next((each for each in parts if _has_sensible_pair(each, recommended)), 0) for parts in around)
    return GlobalBatch(size, devices, pairs, tuple(each * devices for each in found if each))


def _has_sensible_pair(part: int, recommended: int) -> bool:
    """Whether a device's part of the global batch has a divisor that is no much smaller micro-batch."""
    largest = min(recommended, part)
    return any(part % micro == 0 for micro in range(largest, math.ceil(SENSIBLE_SHARE * largest) - 1, -1))


def _pair(micro: int, steps: int, memory: MeasuredMemory) -> BatchPair:
    point = memory.points.get(micro)
    fits = True if steps == 1 else memory.holds_all_gradients_too(micro)
    if point is None:
        return BatchPair(micro, steps, fits)
    speed = (point.samples_per_second, point.samples_per_second_low, point.samples_per_second_high)
    return BatchPair(micro, steps, fits, *speed)
