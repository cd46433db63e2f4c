"""The interface of a worker that the runner needs; tests pass one with a synthetic memory curve."""

from __future__ import annotations

from typing import Any, Protocol

from ..progress import Progress
from ..results.memory_breakdown import MemoryBreakdown
from ..results.result import DeviceFacts, Probe
from ..speed.comparison import TimedBlock


class Prober(Protocol):
    """A worker with a device, real or synthetic."""

    device: DeviceFacts | None
    environment: dict[str, Any]
    import_seconds: float
    model_seconds: float
    sessions: int

    @property
    def is_fresh(self) -> bool: ...
    def trace(self, seconds: float) -> dict[str, Any]: ...
    def open(self) -> None: ...
    def probe(self, batch_size: int, *, steps: int, with_kinds: bool, seconds: float, progress: Progress) -> Probe: ...
    def time(self, batch_size: int, *, block_seconds: float, seconds: float, progress: Progress) -> TimedBlock: ...
    def explain(self, batch_size: int, *, steps: int, seconds: float, progress: Progress) -> MemoryBreakdown | None: ...
    def close(self) -> None: ...
