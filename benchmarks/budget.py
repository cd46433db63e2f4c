"""Holds the trainings of one process to a budget of memory, as a card of that size would.

For other tools that find a batch size, which catch what a card raises. What counts is what counts for `tune`: the same
hooks note it and the same replay adds it up. Before and after each optimizer step the peak is compared with the budget,
and where it is larger `torch.OutOfMemoryError` is raised, with the text of a card. What a refused attempt left behind
is not held against the next one, which on a card it may be.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import MethodType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "engine" / "trainings" / "script" / "hook")]

import memorymark_read as read  # noqa: E402 - the hook's folder is put on the path first
from memorymark_watch import Watch  # noqa: E402

from engine.trainings.script.notes.memory import cpu_memory  # noqa: E402

STEPS = 5  # as many as `tune` reads the memory of


class Enough(BaseException):
    """An attempt has trained its steps."""


class Budget(Watch):
    """Counts attempts, steps and refusals, and refuses what takes more than the budget."""

    def __init__(self, limit_bytes: int, *, steps: int | None = STEPS) -> None:
        super().__init__({"batch": "template", "limit_bytes": None})
        self.budget_bytes, self.wanted = limit_bytes, steps
        self.attempts = self.refused = self.all_steps = self.peak_bytes = 0

    def begin_attempt(self) -> None:
        """Forget the last attempt: what is held now is counted anew at the first forward pass."""
        if self.profile is not None:
            self.stop()
        self.attempts += 1
        self.device, self.depth, self.peak_bytes = None, 0, 0
        self.marks, self.events = [], []
        self.held, self.steps = {}, {}

    def stop(self) -> None:
        profile, self.profile = self.profile, None
        profile.__exit__(None, None, None)
        self.events += read.allocator_events(profile)

    def arm(self, torch: Any) -> None:
        """Compare around each step of each optimizer: within it the profiler must not begin anew."""
        super().arm(torch)
        make = torch.optim.Optimizer.__init__

        def made(optimizer: Any, *others: Any, **options: Any) -> None:
            make(optimizer, *others, **options)
            step = optimizer.step

            def compared(_: Any, *others: Any, **options: Any) -> Any:
                self.compare()
                result = step(*others, **options)
                self.compare()
                if self.wanted is not None and self.least_steps() >= self.wanted:
                    raise Enough
                return result

            optimizer.step = MethodType(compared, optimizer)

        torch.optim.Optimizer.__init__ = made

    def after_step(self, optimizer: Any) -> None:
        if self.device is not None:
            self.mark("step", optimizer)
            self.steps[optimizer] = self.steps.get(optimizer, 0) + 1
            self.all_steps += self.steps[optimizer] == self.least_steps()

    def compare(self) -> None:
        """Raise what a card raises where the peak so far is above the budget."""
        if self.profile is None:
            return
        self.stop()
        memory = cpu_memory(list(self.held.items()), self.events, self.marks)
        self.peak_bytes = memory.peak_bytes
        if memory.peak_bytes > self.budget_bytes:
            self.refused += 1
            raise self.torch.OutOfMemoryError(
                f"CUDA out of memory. The peak is {memory.peak_bytes} bytes, the budget {self.budget_bytes}."
            )
        activities = [self.torch.profiler.ProfilerActivity.CPU]
        self.profile = self.torch.profiler.profile(activities=activities, profile_memory=True).__enter__()

    def end(self, *_: Any) -> None:
        """Stop counting. Nothing is written, unlike in a start of `tune`."""
        if self.profile is not None:
            self.stop()

    def batch_size(self) -> int:
        """Return the first dimension of what the model was given last."""
        shape = next(mark[3] for mark in reversed(self.marks) if mark[1] == "forward")
        return int(shape[0])
