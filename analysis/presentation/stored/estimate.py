"""The stored JSON of an estimate, read back for pages.

A card or a model that is no longer in the catalogue can still be shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.presentation.stored.unreadable import read_or_none, read_stored
from engine.documents.estimated import Estimated, EstimatedCard
from engine.estimate.types import EstimateAt
from engine.results.result import Probe

ESTIMATED_PARTS = (
    ("parameters", "parameters"),
    ("buffers", "buffers"),
    ("gradients", "gradients"),
    ("optimizer_state", "optimizer state"),
    ("activations", "activations"),
    ("temporaries", "temporaries"),
    ("workspaces", "library workspaces"),
    ("communication", "gathered weights and communication buffers"),
)
"""Key of `by_kind` without its unit, and the text for it, in the order they are drawn."""


@dataclass(frozen=True, slots=True)
class StoredEstimate(EstimatedCard):
    """One card's part of an estimate, with what pages say of it."""

    @property
    def points(self) -> tuple[EstimateAt, ...]:
        return tuple(sorted(self.at, key=lambda at: at.batch_size))

    @property
    def capacity_bytes(self) -> int:
        """The full length of the bars: the memory of the card, or the memory limit."""
        return self.spec.memory_limit_bytes or self.gpu.total_bytes

    def memory_bytes(self, point: EstimateAt) -> int:
        """Return the memory that counts: for a whole card the driver's figure, for a limit the allocator's."""
        is_whole = self.spec.memory_limit_bytes is None and point.device_used_bytes is not None
        return point.device_used_bytes or 0 if is_whole else point.memory_bytes

    def memory_at_most(self, batch_size: int) -> int | None:
        """Return the memory of a size, or a bound on it from the estimated sizes around; None above all that fit.

        Memory grows with the batch and is convex, so a straight line between two sizes is never too low.
        """
        points = [(point.batch_size, self.memory_bytes(point)) for point in self.points if point.fits]
        above = next((point for point in points if point[0] >= batch_size), None)
        below = next((point for point in reversed(points) if point[0] <= batch_size), None)
        if above is None or below is None or above == below:
            return above[1] if above else None
        share = (batch_size - below[0]) / (above[0] - below[0])
        return round(below[1] + share * (above[1] - below[1]))

    @property
    def is_approximate(self) -> bool:
        """Whether it was traced on fake CPU tensors instead of a GPU's, whose operators differ."""
        return self.method.startswith("approximate")


@dataclass(frozen=True, slots=True)
class _StoredEstimates(Estimated):
    estimates: tuple[StoredEstimate, ...]


def read_estimates(result: Mapping[str, Any]) -> list[StoredEstimate]:
    """Read the estimates of a run: one for each requested card. Raises UnreadableError."""
    return list(read_stored("estimates", _StoredEstimates.from_dict, result).estimates)


def read_estimate(data: Mapping[str, Any]) -> StoredEstimate:
    """Read the estimate for one card. Raises UnreadableError."""
    return read_stored("estimate", StoredEstimate.from_dict, data)


def earlier_estimate(stored: Mapping[str, Any] | None) -> StoredEstimate | None:
    """Return the estimate that a result or an attempt has of the time before it; None where none can be read."""
    return read_or_none("estimate", read_estimate, stored)


def measured_memory(probe: Probe, point: EstimateAt) -> tuple[int, int] | None:
    """Return estimated and measured bytes of one size: reserved where both have it, else allocated."""
    pairs = (
        (point.peak_reserved_bytes, probe.peak_reserved_bytes),
        (point.peak_allocated_bytes, probe.peak_allocated_bytes),
    )
    return next(((estimated, measured) for estimated, measured in pairs if estimated and measured), None)
