"""The stored JSON of an estimate, read back for pages.

Read leniently, like results: a card or a model that is no longer in the catalogue can still be shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.memory_breakdown import MemoryBreakdown
from engine.result import Probe

KINDS = (
    ("parameters", "parameters"),
    ("buffers", "buffers"),
    ("gradients", "gradients"),
    ("optimizer_state", "optimizer state"),
    ("activations", "activations"),
    ("temporaries", "temporaries"),
    ("workspaces", "library workspaces"),
)
"""Key of `by_kind` without its unit, and the text for it, in the order they are drawn."""


@dataclass(frozen=True, slots=True)
class EstimatedPoint:
    """The estimated memory of one batch size."""

    batch_size: int
    fits: bool
    peak_allocated_bytes: int
    peak_reserved_bytes: int | None
    device_used_bytes: int | None
    phase: str
    operator: str
    by_kind: Mapping[str, int]

    @property
    def memory_bytes(self) -> int:
        """The memory of the training itself: reserved where an allocator reserves, else allocated."""
        return self.peak_allocated_bytes if self.peak_reserved_bytes is None else self.peak_reserved_bytes

    @property
    def where(self) -> str:
        """Write "backward, in scaled_dot_product_attention"; empty where it is unknown."""
        phase = self.phase.replace("_", " ")
        return f"{phase}, in {self.operator}" if phase and self.operator else phase


@dataclass(frozen=True, slots=True)
class StoredEstimate:
    """One card's part of an estimate. `None` means that no size was found, not zero."""

    gpu_id: str
    gpu_name: str
    total_bytes: int
    context_bytes: int | None
    is_calibrated: bool
    memory_limit_bytes: int | None
    """The memory limit that was requested, which is below the card's memory."""
    largest_batch_size: int | None
    safe_batch_size: int | None
    margin_fraction: float | None
    limits: str
    points: tuple[EstimatedPoint, ...]
    method: str
    known_error: Mapping[str, Any]
    seconds: float | None
    versions: Mapping[str, str]
    approximate_because: str = ""
    breakdown: MemoryBreakdown | None = None

    def at(self, batch_size: int | None) -> EstimatedPoint | None:
        return next((point for point in self.points if point.batch_size == batch_size), None)

    @property
    def capacity_bytes(self) -> int:
        """The full length of the bars: the memory of the card, or the memory limit."""
        return self.memory_limit_bytes or self.total_bytes

    def memory_bytes(self, point: EstimatedPoint) -> int:
        """Return the memory that counts: for a whole card the driver's figure, for a limit the allocator's."""
        is_whole = self.memory_limit_bytes is None and point.device_used_bytes is not None
        return point.device_used_bytes or 0 if is_whole else point.memory_bytes

    @property
    def fits_at_all(self) -> bool:
        return bool(self.largest_batch_size)

    @property
    def is_approximate(self) -> bool:
        """Whether it was traced on fake CPU tensors instead of a GPU's, whose operators differ."""
        return self.method.startswith("approximate")


def read_estimates(result: Mapping[str, Any]) -> list[StoredEstimate]:
    """Read the estimates of a run: one for each requested card."""
    return [read_estimate(estimate) for estimate in result["estimates"]]


def read_estimate(data: Mapping[str, Any]) -> StoredEstimate:
    gpu = data["gpu"]
    return StoredEstimate(
        gpu_id=gpu["id"],
        gpu_name=gpu["name"],
        total_bytes=gpu["total_bytes"],
        context_bytes=gpu.get("context_bytes"),
        is_calibrated=bool(gpu.get("calibrated")),
        memory_limit_bytes=data["spec"].get("memory_limit_bytes"),
        largest_batch_size=data["largest_batch_size"],
        safe_batch_size=data["safe_batch_size"],
        margin_fraction=data.get("margin_fraction"),
        limits=str(data["limits"]),
        points=tuple(sorted((_point(point) for point in data["at"]), key=lambda point: point.batch_size)),
        method=data.get("method") or "",
        known_error=data.get("known_error") or {},
        seconds=data.get("seconds"),
        versions=data.get("versions") or {},
        approximate_because=data.get("approximate_because") or "",
        breakdown=MemoryBreakdown.from_dict(breakdown) if (breakdown := data.get("breakdown")) else None,
    )


def measured_memory(probe: Probe, point: EstimatedPoint) -> tuple[int, int] | None:
    """Return estimated and measured bytes of one size: reserved where both have it, else allocated."""
    pairs = (
        (point.peak_reserved_bytes, probe.peak_reserved_bytes),
        (point.peak_allocated_bytes, probe.peak_allocated_bytes),
    )
    return next(((estimated, measured) for estimated, measured in pairs if estimated and measured), None)


def _point(data: Mapping[str, Any]) -> EstimatedPoint:
    by_kind = data.get("by_kind") or {}
    return EstimatedPoint(
        batch_size=data["batch_size"],
        fits=bool(data["fits"]),
        peak_allocated_bytes=data["peak_allocated_bytes"],
        peak_reserved_bytes=data.get("peak_reserved_bytes"),
        device_used_bytes=data.get("device_used_bytes"),
        phase=data.get("phase") or "",
        operator=data.get("operator") or "",
        by_kind={key: by_kind[f"{key}_bytes"] for key, _ in KINDS if f"{key}_bytes" in by_kind},
    )
