"""PURE: the facts of a training that ran as it is: what its process used, and how its command ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..deaths.cause import Death
from ..facts.result import DeviceFacts
from .spec import WatchSpec

Sample = tuple[int, float, int, int]
"""A step, its moment in seconds, the bytes held after it, and the peak bytes so far."""

HostSample = tuple[int, float, int]
"""A step, its moment in seconds, and the bytes that the process then held of the host's memory."""


Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Batches:
    """The shapes of the largest tensors of batches: of the latest ones that were drawn, and of all before them."""

    latest: Shape = ()
    longest_before: Shape = ()


@dataclass(frozen=True, slots=True)
class Shares:
    """What a training holds all the time, on its device."""

    weights_bytes: int
    gradients_bytes: int
    states_bytes: int
    """What the optimizers keep."""


@dataclass(frozen=True, slots=True)
class PiledUp:
    """Tensors that steps made and that stayed, of one shape, or of many: None."""

    shape: Shape | None
    count: int
    bytes: int
    graphs: int
    """So many tensors, of any shape, hold the graph of their step."""


@dataclass(frozen=True, slots=True)
class Process:
    """What was noted of one process that trained. None: not known."""

    steps: int
    seconds: float
    """From the end of the first step to that of the last one."""
    loading_seconds: float
    samples: tuple[Sample, ...]
    batch_size: int | None = None
    peak_bytes: int | None = None
    """What the card's allocator held, or without a card the whole process."""
    refused_allocations: int = 0
    host_samples: tuple[HostSample, ...] = ()
    """Taken only of a training on a card."""
    training_peak_bytes: int | None = None
    """What training steps reached by themselves, where `model.eval()` tells evaluations from them."""
    was_evaluating: bool = False
    """Whether the command ended within an evaluation."""
    batches: Batches = Batches()
    shares: Shares | None = None
    piled_up: PiledUp | None = None
    death: Death | None = None
    """What the text of its error shows; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a command did. `process` is the one that failed first, or else the fullest; None: none trained.

    `status` is the command's exit status, negative for a signal; `free_bytes` are those that the host had left.
    """

    spec: WatchSpec
    environment: dict[str, Any]
    status: int
    total_seconds: float
    oom_kills: int = 0
    free_bytes: int = 0
    device: DeviceFacts | None = None
    device_count: int = 0
    process: Process | None = None
