"""Writes what a process has done so far into a mapped file: it costs no system call, and outlives a hang."""

from __future__ import annotations

import atexit
import mmap
import os
import time
from array import array
from contextlib import suppress
from typing import Any

FACTS = (
    *("began", "importing", "imported", "forwards", "evaluations", "batches", "batch_size"),
    *("optimizers", "steps", "stepped", "ended"),
)
"""Facts in the order of the file, each a float of 8 bytes: counts, and times of `time.monotonic`; 0 for none."""
NUMBER = {fact: number for number, fact in enumerate(FACTS)}
SUFFIX = ".seen"
SIGNAL = "signal"
"""How a process ended that sent itself a signal."""
NO_BATCH = "NoBatch"
"""The error type of a start that is ended because its loader gives no batch, pass after pass."""


class Seen:
    """The facts of this process. A fork of it that counts anything gets a file of its own."""

    def __init__(self, folder: str | None) -> None:
        self.folder = folder
        self.begin()

    def begin(self) -> None:
        self.pid = os.getpid()
        self.facts: Any = array("d", [0.0] * len(FACTS))
        if self.folder is None:
            return
        path = os.path.join(self.folder, f"{self.pid}{SUFFIX}")
        with suppress(OSError):  # the folder is already gone, or the disk is full: nothing is read from it
            with suppress(FileNotFoundError):
                os.unlink(path)  # a process that restarts itself has the same id
            with open(path, "xb+", 0) as file:
                file.write(self.facts.tobytes())  # allocates space now: on a full disk a count would end the program
                self.facts = memoryview(mmap.mmap(file.fileno(), 0)).cast("d")
        self.now("began")
        atexit.register(self.end)

    def count(self, fact: str) -> None:
        if os.getpid() != self.pid:
            imported = self.facts[NUMBER["imported"]]
            self.begin()
            self.put("imported", imported)
        self.facts[NUMBER[fact]] += 1

    def counted(self, fact: str) -> int:
        return int(self.facts[NUMBER[fact]])

    def now(self, fact: str) -> None:
        self.put(fact, time.monotonic())

    def once(self, fact: str) -> None:
        if not self.facts[NUMBER[fact]]:
            self.now(fact)

    def put(self, fact: str, value: float) -> None:
        self.facts[NUMBER[fact]] = value

    def end(self) -> None:
        if os.getpid() == self.pid:  # not where a fork ends that counted nothing
            self.now("ended")
