"""The types of an estimate. All is predicted, and to be shown with that word; `None` is not known, never zero."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ..facts.memory_breakdown import MemoryBreakdown
from ..settings.spec import RunSpec

SCHEMA = 1

Method = Literal["fake_cuda", "approximate_fake_cpu", "fake_cpu"]
"""Fake tensors on `cuda`; on `cpu` in place of `cuda`, whose operators differ somewhat; on `cpu` for the CPU."""
Limit = Literal["memory", "max_batch_size", "does_not_fit"]
OR_MORE = " or more"
"""Follows a size at which the search stopped, wherever it is written in words: "65,536 or more"."""


def safe_bytes(limit_bytes: int, margin_fraction: float) -> int:
    """Return the room of a training that has to fit even if everything takes `margin_fraction` more than predicted."""
    return int(limit_bytes / (1 + margin_fraction))


class Reached:
    """How far a search of batch sizes came, and what ended it."""

    __slots__ = ()
    largest_batch_size: int
    safe_batch_size: int
    limits: Limit

    def is_capped(self, size: int) -> bool:
        """Whether the size is where the search stopped, and no finding about memory."""
        return bool(size) and size == self.largest_batch_size and self.limits == "max_batch_size"

    def size_text(self, size: int, more: str = "+", digits: str = "") -> str:
        """Write "508", "none", or "65536+" for the size at which the search stopped."""
        return f"{size:{digits}}{more if self.is_capped(size) else ''}" if size else "none"


class Judged:
    """Another setting or value that was tried: whether it fits, and `is_safe`: with the margin of error, too."""

    __slots__ = ()
    fits: bool
    is_safe: bool

    @property
    def outcome(self) -> str:
        if self.is_safe:
            return "fits"
        return "fits, but not with the margin" if self.fits else "does not fit"


@dataclass(frozen=True, slots=True)
class KindBytes:
    """What holds the memory at the peak: the eight add up to `peak_allocated_bytes`.

    Activations are what the forward pass allocated; temporaries are what the batch, the backward pass and the optimizer
    allocated, except gradients and optimizer state. Communication is of several GPUs: gathered weights and the buffers
    of collectives. Each block counts with the allocator's rounding.
    """

    parameters_bytes: int = 0
    buffers_bytes: int = 0
    gradients_bytes: int = 0
    optimizer_state_bytes: int = 0
    activations_bytes: int = 0
    temporaries_bytes: int = 0
    workspaces_bytes: int = 0
    communication_bytes: int = 0


@dataclass(frozen=True, slots=True)
class EstimateAt:
    """The predicted memory of one batch size; of a size that does not fit, the memory without the limit.

    `phase` and `operator` are where the peak of the allocated bytes is reached. A CPU has no caching allocator
    and no context: its reserved and device-used bytes are None.
    """

    batch_size: int
    fits: bool
    peak_allocated_bytes: int
    peak_reserved_bytes: int | None
    device_used_bytes: int | None
    phase: str | None
    operator: str | None
    by_kind: KindBytes

    @property
    def used_bytes(self) -> int:
        """The memory that the device uses; of a CPU, that of the training."""
        return self.device_used_bytes or self.peak_allocated_bytes

    @property
    def memory_bytes(self) -> int:
        """The memory of the training itself: reserved where an allocator reserves, else allocated."""
        return self.peak_allocated_bytes if self.peak_reserved_bytes is None else self.peak_reserved_bytes


@dataclass(frozen=True, slots=True)
class EstimatedGpu:
    """The card the estimate is for, as the catalogue has it. For the CPU `total_bytes` is its memory limit."""

    id: str
    name: str
    total_bytes: int
    context_bytes: int
    calibrated: bool


@dataclass(frozen=True, slots=True)
class KnownError:
    """How far `runs` predictions of this family were from measured peaks: median and largest, as fractions."""

    typical_fraction: float
    worst_fraction: float
    runs: int
    source: str


@dataclass(frozen=True, slots=True)
class Estimate(Reached):
    """The answer for one card.

    `largest_batch_size` is the largest predicted to fit, 0 where not even one sample does; `safe_batch_size` the
    largest that still would if everything took `margin_fraction` more than predicted. `limits` is what ends the search.
    `approximate_because` is why the approximate method was used, else None. `breakdown` is what would fill the memory
    one size above the largest; None where it was not requested.
    `attention_kernels` are the fused kernels that the GPU takes at this length; empty on a CPU and where it
    is eager. From `window_tokens` on layers attend to a sliding window by a mask; None where no layer does.
    Batch sizes are of one micro-batch on one GPU. `communication_bytes` are of the library by which several GPUs
    exchange, outside the allocator, on each of them.
    """

    spec: RunSpec
    gpu: EstimatedGpu
    limit_bytes: int
    largest_batch_size: int
    safe_batch_size: int
    margin_fraction: float
    at: tuple[EstimateAt, ...]
    limits: Limit
    method: Method
    known_error: KnownError | None
    seconds: float
    versions: dict[str, str | None]
    expandable_segments: bool = False
    approximate_because: str | None = None
    breakdown: MemoryBreakdown | None = None
    attention_kernels: tuple[str, ...] = ()
    window_tokens: int | None = None
    communication_bytes: int = 0
    schema: int = SCHEMA

    @property
    def place(self) -> str:
        """Write "NVIDIA A100 80GB", or "8 x NVIDIA A100 80GB"."""
        return self.gpu.name if self.spec.ranks == 1 else f"{self.spec.ranks} x {self.gpu.name}"

    def global_batch_size(self, size: int) -> int:
        return size * self.spec.ranks * self.spec.accumulation_steps

    def at_batch_size(self, batch_size: int) -> EstimateAt | None:
        return next((at for at in self.at if at.batch_size == batch_size), None)

    def taking(self, seconds: float) -> Estimate:
        return replace(self, seconds=round(seconds, 3))

    def to_dict(self) -> dict[str, Any]:
        return {"schema": self.schema, **asdict(self), "spec": self.spec.to_dict()}
