"""Records a training that runs as it is, to its end: its memory after steps, its wait for data, how it ended.

It draws no random number, changes no tensor, sets no counter back and never ends the process. What it keeps is bounded.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
import traceback
import weakref
from contextlib import suppress
from importlib import import_module
from typing import Any

import memorymark_kept as kept
import memorymark_read as read
from memorymark_patches import wrap
from memorymark_samples import FIRST_STEPS, Batches, Evaluations, Samples, resident_bytes

WRITE_SECONDS, MOST_TEXT = 2.0, 20_000
"""What is known so far is written so often."""


class Recorder:
    """The record of one process. A fork of it records nothing: loader workers are forks."""

    def __init__(self, settings: Any) -> None:
        self.folder, self.pid = settings["folder"], os.getpid()
        self.torch: Any = None
        self.steps, self.first_step_at, self.last_step_at = 0, 0.0, 0.0
        self.samples, self.batches = Samples(), Batches()
        self.written_at = self.loading_seconds = 0.0
        self.optimizers: Any = weakref.WeakSet()
        self.evaluations = Evaluations(self)
        self.alike: Any = {}  # the tensors after the first steps, by shape
        self.shares: dict[str, int] | None = None
        self.error: dict[str, Any] | None = None

    def arm(self, torch: Any) -> None:
        if self.torch is not None or not hasattr(torch, "nn"):
            return
        self.torch = torch
        optimizer = import_module("torch.optim.optimizer")
        optimizer.register_optimizer_step_post_hook(self.stepped)
        wrap(import_module("torch.utils.data.dataloader")._BaseDataLoaderIter, "__next__", self.drawn)
        wrap(torch.nn.Module, "train", self.evaluations.set_mode)
        wrap(sys, "excepthook", self.failed)
        wrap(os, "_exit", self.left)
        atexit.register(self.ended)

    def is_own(self) -> bool:
        return os.getpid() == self.pid

    def drawn(self, draw: Any, iterator: Any) -> Any:
        began = time.monotonic()
        batch = draw(iterator)
        self.loading_seconds += time.monotonic() - began if self.steps else 0.0
        if self.torch.is_grad_enabled() and not self.evaluations.is_under_way:
            self.batches.see(self.torch, batch, self.steps)
        return batch

    def stepped(self, optimizer: Any, *_: Any) -> None:
        self.steps += 1
        self.evaluations.stepped()
        self.last_step_at = now = time.monotonic()
        self.first_step_at = self.first_step_at or now
        if self.steps <= FIRST_STEPS:
            self.optimizers.add(optimizer)
        if self.steps == FIRST_STEPS:
            self.shares, self.alike = self.shares_now(), kept.alike(self.torch, self.device_type())
        if self.samples.are_due(self.steps, now):
            self.samples.add(self.steps, now, self.memory(), is_on_card=self.card() is not None)
            if now > self.written_at + WRITE_SECONDS:
                self.write(None)

    def memory(self) -> tuple[int, int]:
        """Return the bytes held now and the peak so far: of the card's allocator, or resident ones of the process."""
        if (number := self.card()) is not None:
            counts = self.torch.cuda.memory_stats(number)
            return counts.get("allocated_bytes.all.current", 0), counts.get("allocated_bytes.all.peak", 0)
        held, most = resident_bytes()
        return held, most

    def shares_now(self) -> Any:
        return kept.shares(self.torch, self.device_type())

    def device_type(self) -> str:
        return "cpu" if self.card() is None else "cuda"

    def card(self) -> int | None:
        cuda = self.torch.cuda
        return cuda.current_device() if cuda.is_available() and cuda.is_initialized() else None

    def failed(self, report: Any, kind: Any, exc: Any, trace: Any) -> None:
        report(kind, exc, trace)
        if self.is_own() and issubclass(kind, Exception):
            text = "".join(traceback.format_exception(kind, exc, trace))
            self.error = {"at": time.time(), "text": text[-MOST_TEXT:]}
            self.write("error")

    def left(self, leave: Any, status: int) -> None:
        self.ended()  # it runs no exit handlers
        leave(status)

    def ended(self) -> None:
        if self.is_own() and self.error is None:
            self.write("exit")

    def write(self, how: str | None) -> None:
        if not self.is_own() or not (self.steps or self.error):
            return
        self.written_at = time.monotonic()
        path = os.path.join(self.folder, f"{self.pid}.json")
        with suppress(OSError):  # a full disk is not to end the training
            with open(f"{path}.partial", "w") as file:
                json.dump(self.noted(how), file)
            os.replace(f"{path}.partial", path)

    def noted(self, how: str | None) -> dict[str, Any]:
        number = self.card()
        counts = self.torch.cuda.memory_stats(number) if number is not None else {}
        self.evaluations.end_phase()
        card = read.card_facts(self.torch, number) if number is not None else None
        return {
            **{"ended": how, "pid": self.pid, "rank": int(os.environ.get("RANK", "0")), "error": self.error},
            **{"torch": self.torch.__version__, "steps": self.steps, "batch_size": self.batches.size},
            "seconds": self.last_step_at - self.first_step_at,
            "loading_seconds": self.loading_seconds,
            "samples": self.samples.of_device,
            "host_samples": self.samples.of_host,
            "card": card,
            "peak_bytes": self.memory()[1],  # read after the peak of the steps, which is no higher
            "peak_reserved_bytes": counts.get("reserved_bytes.all.peak"),
            "refused_allocations": counts.get("num_ooms", 0),
            "training_peak_bytes": self.evaluations.highest_in_training_bytes if self.evaluations.are_told else None,
            "was_evaluating": self.evaluations.is_under_way,
            "batches": self.batches.noted(),
            "shares": self.shares,
            **(self.counted_at_end() if how else {}),
        }

    def counted_at_end(self) -> dict[str, Any]:
        """Count anew what the process holds; what a function held that has returned is gone."""
        with suppress(MemoryError):  # a training without memory has none for this
            steps = self.steps - FIRST_STEPS
            added = kept.piled_up(self.alike, kept.alike(self.torch, self.device_type()), steps) if steps > 0 else None
            return {"shares": self.shares or self.shares_now(), "piled_up": added}
        return {}
