"""The stored JSON of a result, read back into the engine's types.

The spec stays a dict on purpose: a run of a model that is no longer offered must still be shown.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from engine.result import Boundary, DeviceFacts, Point, Probe, Reason, Savings, Timings, Waste
from engine.stats import decisive_probes

T = TypeVar("T")


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

    @property
    def roles(self) -> dict[str, int | None]:
        """Which batch size plays which part of the answer."""
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
        """Known not to run: today's size, or a smaller one, was refused. Not to be taken from a missing figure."""
        refused = (probe.batch_size for probe in self.probes if not probe.fits)
        return self.current is None and min(refused, default=self.current_batch_size + 1) <= self.current_batch_size

    @property
    def unsteady_batch_sizes(self) -> list[int]:
        """Of the two sizes that the speed-up compares, those whose timing did not become steady."""
        compared = {point.batch_size for point in (self.current, self.recommended) if point is not None}
        unsteady = {size for size, probe in decisive_probes(self.probes).items() if probe.timing_is_steady is False}
        return sorted(compared & unsteady)

    @property
    def limit_bytes(self) -> int:
        return self.waste.capacity_bytes

    @property
    def is_certified_out_of_memory(self) -> bool:
        return self.boundary.certified and self.boundary.reason is Reason.OUT_OF_MEMORY


def read_result(data: dict[str, Any]) -> StoredResult:
    """Rebuild a result from `RunResult.to_dict()`."""
    boundary = {**data["boundary"], "reason": Reason(data["boundary"]["reason"])}
    return StoredResult(
        spec=data["spec"],
        device=DeviceFacts.from_dict(data["device"]),
        boundary=_as(Boundary, boundary),
        **{name: _as(Point, data[name]) if data[name] else None for name in _POINTS},
        waste=_as(Waste, data["waste"]),
        speedup=data["speedup"],
        batch_size_ratio=data["batch_size_ratio"],
        savings=_as(Savings, data["savings"]),
        probes=tuple(Probe.from_dict(probe) for probe in data["probes"]),
        environment=data["environment"],
        timings=_as(Timings, data["timings"]),
    )


_POINTS = ("largest", "fastest", "recommended", "current")


def _as(kind: type[T], data: dict[str, Any]) -> T:
    """Only the fields this version knows: a later one may have stored more."""
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in data.items() if name in known})


def _size(point: Point | None) -> int | None:
    return None if point is None else point.batch_size
