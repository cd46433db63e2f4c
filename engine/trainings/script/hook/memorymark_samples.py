"""Keeps what a recorded training shows, in bounded room: memory after steps, evaluations, and shapes of batches."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import memorymark_read as read

MOST_SAMPLES = 1_024
FIRST_STEPS, SAMPLE_SECONDS = 20, 0.05
"""The first steps are all sampled, later ones so often at most, and seldomer in a long run."""
LATEST_BATCHES = 2
"""A loader may be one batch ahead of the step."""
KIB = 1024
Batch = tuple[int, Any]
"""The elements of the largest tensor of a batch, and its shape."""


class Samples:
    """The memory after steps: of the device, and beside a card of the host."""

    def __init__(self) -> None:
        self.of_device: list[tuple[int, float, int, int]] = []  # step, time, bytes held after it, peak bytes so far
        self.of_host: list[tuple[int, float, int]] = []  # step, time, resident bytes of the process
        self.seconds_between = SAMPLE_SECONDS
        self.latest_at = 0.0

    def are_due(self, step: int, now: float) -> bool:
        return step <= FIRST_STEPS or now > self.latest_at + self.seconds_between

    def add(self, step: int, now: float, memory: tuple[int, int], *, is_on_card: bool) -> None:
        self.latest_at = now
        self.of_device.append((step, now, *memory))
        if is_on_card:
            self.of_host.append((step, now, resident_bytes()[0]))
        if len(self.of_device) > MOST_SAMPLES:
            del self.of_device[FIRST_STEPS::2], self.of_host[FIRST_STEPS::2]
            self.seconds_between *= 2


class Batches:
    """The batches that are trained on: the rows of the first ones, the latest shapes, and the largest before these."""

    def __init__(self) -> None:
        self.size: int | None = None
        self.largest_before: Batch = (0, ())
        self.latest: list[Batch] = [(0, ())] * LATEST_BATCHES

    def see(self, torch: Any, batch: Any, step: int) -> None:
        if step <= FIRST_STEPS:
            shape = read.inputs_of(torch, batch)[0]
            self.size = max(self.size or 0, shape[0]) if shape else self.size
        values = None if torch.is_tensor(batch) else getattr(batch, "values", None)
        parts = values() if callable(values) else batch if isinstance(batch, (list, tuple)) else (batch,)
        largest: Batch = (0, ())
        for each in parts:
            if torch.is_tensor(each) and (count := each.numel()) > largest[0]:
                largest = (count, each.shape)
        first, *others = self.latest
        self.latest = [*others, largest]
        if first[0] > self.largest_before[0]:
            self.largest_before = first

    def noted(self) -> dict[str, Any]:
        return {"longest_before": self.largest_before[1], "latest": max(self.latest, key=lambda each: each[0])[1]}


class Evaluations:
    """Tells evaluations by `model.eval()` and `model.train()`, and the peak that steps reached without them.

    torch counts one peak since the process began.
    """

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.depth = 0
        self.are_told, self.is_under_way = True, False
        self.highest_bytes = self.highest_in_training_bytes = 0

    def set_mode(self, change: Any, module: Any, mode: bool = True) -> Any:  # as torch's own
        if self.recorder.torch.compiler.is_compiling():
            return change(module, mode)
        self.depth += 1
        try:
            found = change(module, mode)
        finally:
            self.depth -= 1
        begins_or_ends = self.are_told and self.recorder.steps and bool(mode) == self.is_under_way
        if begins_or_ends and not self.depth and self._trains(module):
            self.end_phase()
            self.is_under_way = not mode
        return found

    def end_phase(self) -> None:
        """Note the peak so far for what ends now: a training, or an evaluation."""
        peak_bytes = self.recorder.memory()[1]
        if peak_bytes > self.highest_bytes:
            self.highest_bytes = peak_bytes
            if not self.is_under_way:
                self.highest_in_training_bytes = peak_bytes

    def stepped(self) -> None:
        if self.is_under_way:  # it trains in evaluation mode, which then tells nothing
            self.are_told = self.is_under_way = False

    def _trains(self, module: Any) -> bool:
        """Whether most of what the optimizers train is the module's: a frozen part of a model is no model."""
        optimizers = self.recorder.optimizers
        trained = {id(each) for one in optimizers for group in one.param_groups for each in group["params"]}
        return 2 * sum(id(each) in trained for each in module.parameters()) >= len(trained)


def resident_bytes() -> tuple[int, int]:
    """Return what this process holds of the host's memory, and held at most; 0 where that cannot be read."""
    found = {}
    with suppress(OSError, ValueError), open("/proc/self/status") as file:
        found = {line[:5]: int(line.split()[1]) * KIB for line in file if line.startswith(("VmHWM", "VmRSS"))}
    held = found.get("VmRSS", 0)
    return held, max(held, found.get("VmHWM", 0))
