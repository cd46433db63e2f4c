"""A worker with a made-up memory curve, in the place of one with a device. Behaves like the real one:
a refused probe ends the process, the next one is fresh, and closing makes the next one fresh."""

import platform
from collections.abc import Callable
from typing import Any

from engine.errors import EstimateImpossible, TimeIsUp
from engine.estimate.batch_model import BatchModel, MemoryBlock, Skeleton
from engine.facts.memory_breakdown import MemoryBreakdown
from engine.facts.progress import Progress
from engine.facts.result import DeviceFacts, Outcome, Probe
from engine.race.speed.comparison import TimedBlock
from tests.engine.synthetic_devices import Device


class FakeWorker:
    """Refuses above `boundary` (and, in a soak, above `soak_boundary`); a step takes `step_seconds(size)`.

    Other work uses `others_cores` while steps are timed, and sizes in `not_together` are refused then. A size in
    `refuses_when_used` that has fitted is refused by a process that has run others. `curve` replaces the straight
    line. `traced` is what a trace gives: a model of the memory, or what is raised instead; `breakdown` the same of what
    fills the memory, and `explained` the sizes for which it was requested.
    """

    def __init__(
        self,
        boundary: int,
        *,
        curve: Device | None = None,
        soak_boundary: int | None = None,
        refusal: Outcome = Outcome.OUT_OF_MEMORY,
        step_seconds: Callable[[int], float] = lambda size: 0.01 + 0.001 * size,
        time_is_up_after: int = 10_000,
        others_cores: float | None = None,
        not_together: frozenset[int] = frozenset(),
        refuses_when_used: frozenset[int] = frozenset(),
        traced: BatchModel | Exception | None = None,
        breakdown: MemoryBreakdown | Exception | None = None,
    ) -> None:
        limit = 1000 + 10 * boundary + 5
        self.curve = curve or Device(lambda size: 1000 + 10 * size, lambda size: size <= boundary, limit, boundary)
        limit = self.curve.limit_bytes
        self.device: DeviceFacts | None = DeviceFacts("cpu", "cpu", "Made-up device", 10 * limit, limit_bytes=limit)
        self.environment: dict[str, Any] = {"torch": "none", "host": platform.node()}
        self.import_seconds = self.model_seconds = 0.0
        self.sessions = 0
        self.soak_boundary = soak_boundary
        self.refusal = refusal
        self.step_seconds = step_seconds
        self.time_is_up_after = time_is_up_after
        self.others_cores = others_cores
        self.not_together = not_together
        self.timed: list[int] = []
        self.breakdown = breakdown
        self.explained: list[int] = []
        self.refuses_when_used = refuses_when_used
        self.traced = traced or EstimateImpossible("nothing to trace")
        self.sizes: list[int] = []
        self.is_fresh = True

    def trace(self, seconds: float) -> dict[str, Any]:
        if isinstance(self.traced, Exception):
            raise self.traced
        return self.traced.to_dict()

    def open(self) -> None:
        self.sessions += self.is_fresh

    def close(self) -> None:
        self.is_fresh = True

    def probe(self, batch_size: int, *, steps: int, with_kinds: bool, seconds: float, progress: Progress) -> Probe:
        if len(self.sizes) >= self.time_is_up_after:
            raise TimeIsUp("made up")
        is_spoiled = batch_size in self.refuses_when_used and batch_size in self.sizes and not self.is_fresh
        self.sizes.append(batch_size)
        progress("memory", steps)
        fresh, fits = self.is_fresh, self._fits(batch_size, is_soak=not with_kinds) and not is_spoiled
        self.is_fresh = not fits
        if not fits:
            return Probe(
                batch_size,
                self.refusal,
                fresh_process=fresh,
                error_type="BudgetExceeded",
                error_message=f"{batch_size} refused",
                wall_seconds=1.0,
            )
        return Probe(
            batch_size,
            Outcome.FITS,
            fresh_process=fresh,
            steps=steps,
            peak_allocated_bytes=self.curve.memory(batch_size),
            wall_seconds=1.0,
        )

    def time(self, batch_size: int, *, block_seconds: float, seconds: float, progress: Progress) -> TimedBlock:
        if len(self.sizes) + len(self.timed) >= self.time_is_up_after:
            raise TimeIsUp("made up")
        self.timed.append(batch_size)
        progress("timing", 1)
        self.is_fresh = False
        if batch_size in self.not_together:
            self.is_fresh = True
            return TimedBlock(batch_size, self.refusal, error_message="made up")
        steps = (self.step_seconds(batch_size),) * 3
        return TimedBlock(batch_size, Outcome.FITS, steps, sum(steps), {"others_cores": self.others_cores})

    def explain(self, batch_size: int, *, steps: int, seconds: float, progress: Progress) -> MemoryBreakdown | None:
        if isinstance(self.breakdown, Exception):
            raise self.breakdown
        self.explained.append(batch_size)
        progress("attribution", 1)
        return self.breakdown

    def _fits(self, batch_size: int, *, is_soak: bool) -> bool:
        if is_soak and self.soak_boundary is not None:
            return batch_size <= self.soak_boundary
        return self.curve.fits(batch_size)


def synthetic_model(base_bytes: int, bytes_per_sample: int) -> BatchModel:
    """Two blocks that live for one step: one for the model, one for the batch."""
    blocks = (MemoryBlock("parameters", None, "load"), MemoryBlock("activations", "forward", "aten::mm"))
    return BatchModel(Skeleton(blocks, (0, 1, ~1), (1,)), (base_bytes, 0), (0, bytes_per_sample), (3, 5), "fake_cpu")
