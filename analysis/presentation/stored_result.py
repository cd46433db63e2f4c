"""The stored JSON of a result, read back into the engine's types.

The spec remains a dict, so that a run of a model that is no longer in the catalogue can still be shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.from_json import from_json
from engine.memory_breakdown import MemoryBreakdown
from engine.result import Boundary, DeviceFacts, Point, Probe, Reason, RecommendedBy, Savings, Speed, Timings, Waste
from engine.stats import decisive_probes
from engine.tune.training import Training


@dataclass(frozen=True, slots=True)
class StoredResult:
    """`engine.RunResult` as it was when the run finished."""

    spec: dict[str, Any]
    device: DeviceFacts
    boundary: Boundary
    largest: Point | None
    fastest: Point | None
    recommended: Point | None
    current: Point | None
    waste: Waste
    speedup: float | None
    batch_size_ratio: float | None
    savings: Savings
    probes: tuple[Probe, ...]
    environment: dict[str, Any]
    timings: Timings
    speed: Speed | None = None
    """How reliable the speeds are; None in results of versions before 0.5."""
    speedup_low: float | None = None
    speedup_high: float | None = None
    training: Training | None = None
    """None for a model of the catalogue."""
    memory_breakdown: MemoryBreakdown | None = None
    """What filled the memory; None where it is not known, as in results of versions before 0.5."""

    @property
    def is_speed_measurable(self) -> bool:
        """False only where the engine reported it; results before 0.5 did not."""
        return self.speed is None or self.speed.is_measurable

    @property
    def compares_speeds(self) -> bool:
        """Whether the run was to compare speeds: always, but of a command only where that was requested."""
        return self.training is None or bool(self.spec.get("compare_speed"))

    @property
    def is_check(self) -> bool:
        """Whether one size was run, and no limit searched."""
        return self.spec.get("check_batch_size") is not None

    @property
    def is_recommended_by_memory(self) -> bool:
        return self.speed is not None and self.speed.recommended_by == RecommendedBy.MEMORY_RESERVE

    @property
    def free_bytes(self) -> int | None:
        """The memory that the recommended size leaves free."""
        if self.recommended is None or self.recommended.memory_bytes is None:
            return None
        return self.limit_bytes - self.recommended.memory_bytes

    @property
    def keeps_reserve(self) -> bool:
        """Whether the recommended size leaves the requested reserve; false also where either is unknown."""
        if self.speed is None or self.free_bytes is None:
            return False
        return self.free_bytes >= self.limit_bytes * self.speed.reserve_fraction

    @property
    def roles(self) -> dict[str, int | None]:
        """The batch size of each role in the result."""
        return {
            "recommended": _size(self.recommended),
            "fastest": _size(self.fastest),
            "largest": _size(self.largest),
            "current": self.current_batch_size,
        }

    @property
    def current_batch_size(self) -> int:
        return int(self.spec["current_batch_size"])

    @property
    def current_is_refused(self) -> bool:
        """Whether today's size is known not to fit: it or a smaller one was refused. A missing figure is no proof."""
        refused = (probe.batch_size for probe in self.probes if not probe.fits)
        return self.current is None and min(refused, default=self.current_batch_size + 1) <= self.current_batch_size

    @property
    def unsteady_batch_sizes(self) -> list[int]:
        """The compared sizes whose timing did not become steady.

        Empty where the speeds have intervals, which express this.
        """
        if self.speed is not None:
            return []
        compared = {point.batch_size for point in (self.current, self.recommended) if point is not None}
        unsteady = {size for size, probe in decisive_probes(self.probes).items() if probe.timing_is_steady is False}
        return sorted(compared & unsteady)

    @property
    def speed_intervals(self) -> tuple[tuple[int, float, float], ...]:
        """The intervals of the sizes that were timed in enough rounds, in rising order."""
        points = (self.largest, self.fastest, self.recommended, self.current)
        return tuple(sorted({known for point in points if (known := _speed_interval(point))}))

    @property
    def limit_bytes(self) -> int:
        return self.waste.capacity_bytes

    @property
    def is_certified_out_of_memory(self) -> bool:
        return self.boundary.certified and self.boundary.reason is Reason.OUT_OF_MEMORY


def read_result(data: dict[str, Any]) -> StoredResult:
    """Rebuild a result from `RunResult.to_dict()`, of this version or an earlier one."""
    return from_json(StoredResult, data)


def _speed_interval(point: Point | None) -> tuple[int, float, float] | None:
    if point is None or point.samples_per_second_low is None or point.samples_per_second_high is None:
        return None
    return point.batch_size, point.samples_per_second_low, point.samples_per_second_high


def _size(point: Point | None) -> int | None:
    return None if point is None else point.batch_size
