"""Records what a training does, in the user's own process. `sitecustomize.py` starts it once torch has been imported.

It records each optimizer step, forward pass and batch, reads the memory they took, and ends the process after the steps
that it was to watch. It draws no random number and changes no tensor: the losses of those steps are those of a run
without it. The record goes into one JSON file per process, in a folder of MemoryMark's; nothing is sent anywhere.
"""

from __future__ import annotations

import atexit
import enum
import json
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

import memorymark_read as read
from memorymark_cards import Cards
from memorymark_ends import rank_ran
from memorymark_forwards import Forwards, Raised
from memorymark_held import CpuMemory
from memorymark_loaders import Loaders
from memorymark_optimizers import Steps
from memorymark_patches import wrap
from memorymark_seat import goes_on
from memorymark_seen import Seen

LONGEST_SOCKET_FOLDER = 80
"""A socket's path has at most 104 bytes."""
watched: Any = None
"""The watch over this process; None where there is none."""


class Stage(enum.Enum):
    """What a watch does with the steps of a training."""

    WAITING = enum.auto()
    """No step is near: no model has run, or only before the first optimizer was made."""
    READING_MEMORY = enum.auto()
    TIMING = enum.auto()


def begin(settings: Any) -> Any:
    """Make the watch over this process. It has to be armed when torch has been imported."""
    global watched
    watched = Watch(settings)
    return watched


class Watch:
    """The record of one process: marks in their order, and on a CPU the allocator's events between them."""

    def __init__(self, settings: Any) -> None:
        self.settings, self.stage, self.is_ended = settings, Stage.WAITING, False
        self.torch: Any = None
        self.device: Any = None
        self.cpu: Any = None  # its memory
        self.marks: list[Any] = []
        self.seen, self.group = Seen(settings.get("folder")), None
        self.forwards, self.loaders, self.steps, self.cards = Forwards(self), Loaders(self), Steps(self), Cards(self)
        self.epoch: Any = None
        self.faster: Any = None

    def arm(self, torch: Any) -> None:
        self.torch = torch
        self.mark("armed", torch.__version__, sys.argv)
        self.seen.once("imported")
        self.cpu = CpuMemory(torch)
        self.forwards.raised = Raised(torch, lambda: self.mark("backward"))
        folder, process = self.settings["folder"], import_module("multiprocessing.process")
        if len(folder) < LONGEST_SOCKET_FOLDER:  # killed workers do not remove their sockets
            process.current_process()._config.setdefault("tempdir", folder)
        if self.settings.get("faster"):
            self.faster = import_module("memorymark_faster").Faster(self, torch)
            self.faster.follow()
        if self.settings.get("whole_run"):
            self.epoch = import_module("memorymark_epoch").Epoch(self, torch)
        for owner, name, around in self.patches():
            wrap(owner, name, around)
        optim = import_module("torch.optim.optimizer")
        optim.register_optimizer_step_pre_hook(lambda *_: self.phase("optimizer_step"))
        optim.register_optimizer_step_post_hook(lambda optimizer, *_: self.steps.end(optimizer))
        self.forwards.follow()
        if self.cards.can_be_limited:
            torch.cuda._lazy_call(self.cards.limit_memory)  # when the script opens the card, not before
        atexit.register(self.end, "exit")

    def patches(self) -> Iterator[tuple[Any, str, Any]]:
        """Yield the owner and the name of each function that is followed, and what it is called by."""
        iterators = import_module("torch.utils.data.dataloader")._BaseDataLoaderIter
        yield iterators, "__init__", self.loaders.made_iterator
        yield iterators, "_next_index", self.loaders.numbered
        yield iterators, "__next__", self.loaders.drawn
        if self.epoch is not None:
            yield iterators, "_reset", self.epoch.began_pass
            yield self.torch, "save", self.epoch.saved_checkpoint
        yield import_module("torch.optim.optimizer").Optimizer, "__init__", self.steps.made_optimizer
        yield sys, "excepthook", self.failed
        yield import_module("multiprocessing.process").BaseProcess, "run", partial(rank_ran, self)

    def failed(self, report: Any, kind: Any, exc: Any, trace: Any) -> None:
        self.fail(exc)
        report(kind, exc, trace)

    def fail(self, error: Any) -> None:
        is_cut = self.epoch is not None and self.epoch.is_ended_by_cut(type(error), str(error))
        self.end("cut" if is_cut else "error", type(error).__name__, str(error))

    def place(self) -> tuple[int, int]:
        """Return the rank of this process and how many there are; of a group also when it has been left."""
        self.group = self.group or read.place_in_group(self.torch)
        return self.group or (int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))

    def is_alone(self) -> bool:
        """Whether no other process waits for this one: it is in no group, or stands in for a group's rank."""
        return bool(self.settings.get("emulated")) or self.place()[1] == 1

    def mark(self, name: Any, *details: Any) -> float:
        """Add a mark, and return its time."""
        now = time.monotonic()
        self.marks.append([now, name, *details])
        if self.cpu is not None:
            self.cpu.mark(len(self.marks) - 1)
        return now

    def phase(self, name: Any) -> None:
        """Mark a phase; on a card with the peak bytes so far and the bytes now."""
        is_read = self.stage is Stage.READING_MEMORY and self.device.type == "cuda"
        cuda, device = self.torch.cuda, self.device
        held = (cuda.max_memory_allocated(device), cuda.memory_allocated(device)) if is_read else (None, None)
        self.mark("phase", name, *held)

    @property
    def is_waiting(self) -> bool:
        return self.stage is Stage.WAITING

    @property
    def is_timing(self) -> bool:
        return self.stage is Stage.TIMING

    def has_begun(self) -> bool:
        """Whether what runs now may be the training: a module runs before, too, in a constructor or a summary of it."""
        return bool(self.steps.optimizers or self.forwards.went_back or self.steps.counts)

    def forget_start(self) -> None:
        """Watch from the next forward pass on: the one before was of a constructor or a summary of the model."""
        self.cpu.forget()
        self.device, self.stage = None, Stage.WAITING
        self.mark("begun")

    def trains_on(self, device: Any) -> None:
        """Begin to read the memory at the first pass on a device; again where the model is moved before it trains."""
        is_moved = self.device is not None and device is not None and self.device.type == "cpu" != device.type
        if is_moved and not self.steps.counts and not self.is_timing:
            self.forget_start()
        if self.is_waiting and device is not None:
            self.device, self.stage = device, Stage.READING_MEMORY
            _ = self.cpu.begin(self.steps.optimizers) if device.type == "cpu" else self.cpu.end()

    def begin_timing(self) -> None:
        """Read the memory of the steps so far, and watch no more than the time of those that follow."""
        self.cpu.end()
        card, self.stage = self.cards.memory(), Stage.TIMING
        self.steps.begin_timing()
        self.loaders.note_unseen()
        self.mark("memory_read", card.get("peak_allocated_bytes"), self.seen.counted("evaluations"))
        self.forwards.follow_outermost_alone()

    def end(self, how: Any, error_type: Any = None, error_message: Any = None) -> None:
        if self.is_ended:
            return
        self.is_ended, computing = True, self.steps.computing_fraction()
        self.seen.end()  # os._exit calls no handlers
        if self.cpu is not None:
            self.cpu.end()  # the profiler must not outlive the interpreter
        message = error_message and read.shortened(error_message)
        noted = {"ended": how, "error_type": error_type, "error_message": message, "computing_fraction": computing}
        path = os.path.join(self.settings["folder"], f"{os.getpid()}.json")
        with open(path + ".partial", "w") as file:
            json.dump(noted | self.noted(), file)
        os.replace(path + ".partial", path)
        if how == "done":
            sys.stdout.flush()
            if not goes_on(self):
                os._exit(0)

    def noted(self) -> dict[str, Any]:
        """Return what is known of the process however it ends."""
        rank, world = self.place()
        card, numbers = self.cards.memory(), self.cards.numbers
        device = self.device and (f"cuda:{card['index']}" if len(numbers) > 1 else str(self.device))
        return {
            **{"pid": os.getpid(), "rank": rank, "world_size": world, "python": sys.version.split()[0]},
            **{"marks": self.marks, "device": device, "card": card, "cards": len(numbers)},
            **(self.cpu.noted() if self.cpu else {}),
            "trainings": self.steps.turns.trainings,
            "empty_passes": (self.loaders.empty, self.loaders.rows),
            "emulated": bool(self.settings.get("emulated")),
            "has_group": self.group is not None,
            "loader": self.loaders.workers,
            "whole_run": self.epoch and self.epoch.seen(),
            "raised_out_of_memory": self.forwards.raised and self.forwards.raised.count,
            "faster": self.faster and self.faster.seen(),
            "idle_optimizers": self.steps.idle() if self.torch else 0,
            "unseen": self.loaders.unseen,
            "own_seconds": self.steps.own_seconds_of_a_step(),
        }
