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
from contextlib import suppress
from importlib import import_module
from typing import Any

import memorymark_read as read
from memorymark_patches import wrap

MOST_SAMPLES = 1_024
FIRST_STEPS, SAMPLE_SECONDS, WRITE_SECONDS = 20, 0.1, 2.0
"""The first steps are all sampled, later ones so often at most; what is known so far is written so often."""
MOST_TEXT = 20_000


class Recorder:
    """The record of one process. A fork of it records nothing: loader workers are forks."""

    def __init__(self, settings: Any) -> None:
        self.folder, self.pid = settings["folder"], os.getpid()
        self.torch: Any = None
        self.steps, self.first_step_at, self.last_step_at = 0, 0.0, 0.0
        self.samples: list[tuple[int, float, int, int]] = []  # step, time, bytes held after it, peak bytes so far
        self.host_samples: list[tuple[int, float, int]] = []  # beside a card: step, time, resident bytes of the process
        self.seconds_between = SAMPLE_SECONDS
        self.sampled_at = self.written_at = self.loading_seconds = 0.0
        self.batch_size: int | None = None
        self.error: dict[str, Any] | None = None
        self.page_bytes = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0

    def arm(self, torch: Any) -> None:
        if self.torch is not None or not hasattr(torch, "nn"):
            return
        self.torch = torch
        optimizer = import_module("torch.optim.optimizer")
        optimizer.register_optimizer_step_post_hook(self.stepped)
        wrap(import_module("torch.utils.data.dataloader")._BaseDataLoaderIter, "__next__", self.drawn)
        wrap(sys, "excepthook", self.failed)
        wrap(os, "_exit", self.left)
        atexit.register(self.ended)

    def is_own(self) -> bool:
        return os.getpid() == self.pid

    def drawn(self, draw: Any, iterator: Any) -> Any:
        began = time.monotonic()
        batch = draw(iterator)
        self.loading_seconds += time.monotonic() - began if self.steps else 0.0
        if self.steps <= FIRST_STEPS and self.torch.is_grad_enabled():
            shape = read.inputs_of(self.torch, batch)[0]
            self.batch_size = max(self.batch_size or 0, shape[0]) if shape else self.batch_size
        return batch

    def stepped(self, *_: Any) -> None:
        self.steps += 1
        self.last_step_at = now = time.monotonic()
        self.first_step_at = self.first_step_at or now
        if self.steps <= FIRST_STEPS or now > self.sampled_at + self.seconds_between:
            self.sample(now)

    def sample(self, now: float) -> None:
        self.sampled_at = now
        self.samples.append((self.steps, now, *self.memory()))
        if self.card() is not None:
            self.host_samples.append((self.steps, now, self.resident_bytes()))
        if len(self.samples) > MOST_SAMPLES:
            del self.samples[FIRST_STEPS::2], self.host_samples[FIRST_STEPS::2]
            self.seconds_between *= 2
        if now > self.written_at + WRITE_SECONDS:
            self.write(None)

    def memory(self) -> tuple[int, int]:
        """Return the bytes held now and the peak so far: of the card's allocator, or resident ones of the process."""
        if (number := self.card()) is not None:
            counts = self.torch.cuda.memory_stats(number)
            return counts.get("allocated_bytes.all.current", 0), counts.get("allocated_bytes.all.peak", 0)
        held = self.resident_bytes()
        return held, max(held, self.samples[-1][3] if self.samples else 0)

    def resident_bytes(self) -> int:
        """Return what the process holds of the host's memory; 0 where that cannot be read."""
        with suppress(OSError, ValueError, IndexError), open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * self.page_bytes
        return 0

    def card(self) -> int | None:
        cuda = self.torch.cuda
        return cuda.current_device() if cuda.is_available() and cuda.is_initialized() else None

    def failed(self, report: Any, kind: Any, exc: Any, trace: Any) -> None:
        if self.is_own() and issubclass(kind, Exception):
            text = "".join(traceback.format_exception(kind, exc, trace))
            self.error = {"at": time.time(), "text": text[-MOST_TEXT:]}
            self.write("error")
        report(kind, exc, trace)

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
        card = read.card_facts(self.torch, number) if number is not None else None
        return {
            **{"ended": how, "pid": self.pid, "rank": int(os.environ.get("RANK", "0")), "error": self.error},
            **{"torch": self.torch.__version__, "steps": self.steps, "batch_size": self.batch_size},
            "seconds": self.last_step_at - self.first_step_at,
            "loading_seconds": self.loading_seconds,
            "samples": self.samples,
            "host_samples": self.host_samples,
            "card": card,
            "peak_bytes": counts.get("allocated_bytes.all.peak") if card else self.memory()[1],
            "peak_reserved_bytes": counts.get("reserved_bytes.all.peak"),
            "refused_allocations": counts.get("num_ooms", 0),
        }
