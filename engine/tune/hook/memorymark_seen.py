"""Writes what a process has done so far, for MemoryMark to read while the process runs: a few numbers in a file.

The file is mapped into memory, so that a count costs no system call and is readable even if the process then hangs.
"""

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


class Seen:
    """The facts of this process. A fork of it counts into the same file."""

    def __init__(self, folder: str | None) -> None:
        self.facts: Any = array("d", [0.0] * len(FACTS))
        if folder is None:
            return
        path = os.path.join(folder, f"{os.getpid()}{SUFFIX}")
        with suppress(OSError):  # the folder is already gone, or the disk is full: nothing is read from it
            with suppress(FileNotFoundError):
                os.unlink(path)  # a process that restarts itself has the same id
            with open(path, "xb+", 0) as file:
                file.write(self.facts.tobytes())  # allocates space now: on a full disk a count would end the program
                self.facts = memoryview(mmap.mmap(file.fileno(), 0)).cast("d")
        self.now("began")
        atexit.register(self.end, os.getpid())

    def count(self, fact: str) -> None:
        self.facts[NUMBER[fact]] += 1

    def now(self, fact: str) -> None:
        self.put(fact, time.monotonic())

    def once(self, fact: str) -> None:
        if not self.facts[NUMBER[fact]]:
            self.now(fact)

    def put(self, fact: str, value: float) -> None:
        self.facts[NUMBER[fact]] = value

    def end(self, pid: int) -> None:
        if os.getpid() == pid:  # not where a fork ends
            self.now("ended")
