"""PURE: the estimate a run makes before it measures, for its own device and limit; it is graded at the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..errors import EstimateImpossible
from ..facts.result import DeviceFacts, EstimateError, Probe, RunResult
from ..facts.stats import decisive_probes
from ..search.guided import ExpectedMemory
from ..settings.spec import RunSpec
from . import gpus
from .batch_model import BatchModel
from .calibration import Calibration, apply
from .gpus import Gpu
from .predict import estimate, estimate_at
from .replay import Replays
from .types import Estimate, EstimateAt

_VERSIONS = ("torch", "transformers", "torchvision")


def card_of(device: DeviceFacts, calibration: Calibration | None = None) -> Gpu | None:
    """Find the card whose rules apply to this device, with its own or calibrated figures; None is the CPU."""
    if device.kind == "cpu":
        return None
    card = gpus.match(device.name, device.capacity_bytes) or _unnamed(device)
    if calibration is not None:
        card = apply(card, calibration)
    # memory that others hold is as unavailable to the training as the context
    context_bytes = card.context_bytes + (device.foreign_used_bytes or 0)
    return replace(card, total_bytes=device.capacity_bytes, context_bytes=context_bytes)


def _unnamed(device: DeviceFacts) -> Gpu:
    """Return a card outside the catalogue, or a slice of a card: the compute capability decides its rules."""
    if device.compute_capability is None:
        raise EstimateImpossible(f"{device.name} cannot be estimated; measure on it instead")
    major, minor = (int(part) for part in device.compute_capability.split("."))
    return replace(
        gpus.of_memory(device.capacity_bytes),
        name=device.name,
        compute_capability=(major, minor),
        cublas_workspace_bytes=gpus.cublas_workspace_bytes((major, minor)),
    )


@dataclass(frozen=True, slots=True)
class PriorEstimate:
    """What was predicted for a device before anything was run on it."""

    estimate: Estimate
    card: Gpu | None
    replays: Replays

    @classmethod
    def of(
        cls,
        spec: RunSpec,
        device: DeviceFacts,
        environment: dict[str, Any],
        model: BatchModel,
        seconds: float,
        calibration: Calibration | None = None,
    ) -> PriorEstimate:
        """Predict by a traced model; `seconds` is what tracing took. Raises SpecError for what the device cannot do."""
        card = card_of(device, calibration)
        is_expandable = "expandable_segments:True" in (environment.get("allocator_settings") or "")
        replays = Replays(model, expandable_segments=is_expandable)
        limited = spec if card else replace(spec, memory_limit_bytes=device.limit_bytes)  # a small host has less
        made = estimate(
            limited,
            card,
            model,
            seconds=seconds,
            versions={name: environment.get(name) for name in _VERSIONS},
            cpu_name=device.name,
            replays=replays,
        )
        return cls(made, card, replays)

    def expectation(self) -> ExpectedMemory:
        """Return the expectation for the search, which knows the available memory better than any catalogue."""
        return ExpectedMemory(
            partial(self.replays.peak_bytes, self.card),
            self.estimate.margin_fraction,
            partial(self.replays.fits, self.card),
        )

    def at(self, batch_size: int) -> EstimateAt:
        known = self.estimate.at_batch_size(batch_size)
        limit_bytes = self.estimate.limit_bytes
        return known or estimate_at(self.replays.model, self.card, batch_size, limit_bytes, replays=self.replays)

    def with_sizes(self, batch_sizes: Iterable[int]) -> Estimate:
        sizes = sorted({*batch_sizes, *(at.batch_size for at in self.estimate.at)})
        return replace(self.estimate, at=tuple(self.at(size) for size in sizes))


def graded(result: RunResult, prior: PriorEstimate) -> RunResult:
    """Add the estimate for every size that trained, and how far it was off."""
    estimate = prior.with_sizes(p.batch_size for p in _fitting(result))
    return replace(result, estimate=estimate.to_dict(), estimate_error=error_of(estimate, result))


def error_of(estimate: Estimate, result: RunResult) -> EstimateError:
    largest = result.boundary.largest_batch_size
    fitting = _fitting(result)
    point = estimate.at_batch_size(fitting[-1].batch_size) if fitting else None
    pair = memory_pair(point, fitting[-1]) if point else None
    boundary_error = estimate.largest_batch_size / largest - 1 if result.boundary.certified and largest else None
    return EstimateError(pair and pair[0] / pair[1] - 1, boundary_error)


def memory_pair(point: EstimateAt, probe: Probe) -> tuple[int, int] | None:
    """Return estimated and measured bytes of one size: reserved where both have it, else allocated."""
    if point.peak_reserved_bytes is not None and probe.peak_reserved_bytes:
        return point.peak_reserved_bytes, probe.peak_reserved_bytes
    return (point.peak_allocated_bytes, probe.peak_allocated_bytes) if probe.peak_allocated_bytes else None


def _fitting(result: RunResult) -> list[Probe]:
    largest = result.boundary.largest_batch_size or 0
    return [p for size, p in decisive_probes(result.probes).items() if p.fits and size <= largest]
