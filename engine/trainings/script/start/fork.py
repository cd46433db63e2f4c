"""Starts a training as a fork of this program: for a function that exists nowhere else, as one of a notebook.

A fork has run nothing yet, so each refusal counts. It loses open drivers, and the threads of earlier computations.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ....errors import CommandUntunable
from ....machine.fork import ForkFailed, in_a_fork
from ....machine.parent import die_with_parent, prefer_as_oom_victim
from ..notes.file_changes import Way
from ..spec import FunctionSpec
from .environment import HOOK, environment_of, hook_settings
from .guard import layers
from .launch import Place, Watching
from .protection import Protection, protection_of

MakeStep = Callable[[int], Callable[[], object]]

DRIVERS = {"cuda": "CUDA", "xpu": "XPUs"}
DRIVER_SECONDS = 120  # a driver that keeps no state between processes takes seconds for each card
REMEDY = "put make_step in a module of its own and import it from there, or restart this program and tune first"
PARALLEL_SECONDS = 5
PARALLEL_ELEMENTS = 1 << 20


def why_no_fork() -> str | None:
    """Return why this program cannot be forked; None where it can."""
    if not sys.platform.startswith("linux"):
        return f"a fork is not safe on {sys.platform}"
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    opened = [name for name in DRIVERS if getattr(torch, name).is_initialized()] or _drivers_lost(torch)
    return f"this program has opened the driver of {DRIVERS[opened[0]]}, which is lost in a fork" if opened else None


def _drivers_lost(torch: Any) -> list[str]:
    """Return the drivers that a fork cannot use; whether it can is tried in one.

    `torch.cuda.is_available()` alone opens a driver, and beside a card so does each backward pass, on the CPU, too. A
    fork that asked again would be told that there is no card, and train on the CPU.
    """

    def is_lost(name: str) -> bool:
        if getattr(torch, name)._is_in_bad_fork():
            return True
        if name != "cuda" or torch.cuda.device_count() == 0:  # counted by NVML, which needs no open driver
            return False
        try:
            torch.cuda.init()
        except RuntimeError:
            return True
        return False

    lost: list[str] = in_a_fork(lambda: [name for name in DRIVERS if is_lost(name)], DRIVER_SECONDS)
    return lost


def check_fork(name: str) -> None:
    """Raise CommandUntunable where this program cannot be forked to run a function that is nowhere else."""
    if (reason := why_no_fork()) is not None:
        raise CommandUntunable("cannot_fork", f"{name} cannot be imported elsewhere, and {reason}: {REMEDY}")


def begin_fork(make_step: MakeStep, spec: FunctionSpec) -> Callable[[int, Watching, Place], Forked]:
    return partial(_fork, make_step, spec, _threads_of_a_fork(), protection_of(spec))


def _fork(
    make_step: MakeStep,
    spec: FunctionSpec,
    threads: int | None,
    protection: Protection,
    batch_size: int,
    watching: Watching,
    place: Place,
) -> Forked:
    kept = protection.settings(place.log.parent, batch_size, os.getcwd(), {})
    settings = hook_settings(spec, batch_size, watching, place, threads)
    environment = environment_of(spec.device, batch_size)
    parent = os.getpid()
    for stream in (sys.stdout, sys.stderr):  # what is in a buffer would be written by the fork, too
        stream.flush()
    pid = os.fork()
    if pid == 0:
        try:
            die_with_parent(parent)
            prefer_as_oom_victim()
            if protection.way is Way.LAYERS:
                layers.enter(Path(kept["scratch"]), kept["shared"])
            sys.path.insert(0, str(HOOK))
            import_module("memorymark_step").live_as_fork(make_step, batch_size, settings, environment, str(place.log))
        finally:
            os._exit(1)
    return Forked(pid, Path(kept["scratch"]))


@dataclass
class Forked:
    """A fork with the processes of its session."""

    pid: int
    layers: Path
    status: int | None = None

    def has_ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None

    def end(self) -> int | None:
        """Kill the fork and what is left of its group; return its exit status where it had ended by itself."""
        has_ended = self.has_ended()
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        if not has_ended:
            os.kill(self.pid, signal.SIGKILL)  # where it had no group of its own yet
            os.waitpid(self.pid, 0)
        layers.remove(self.layers)
        return self.status


def _threads_of_a_fork() -> int | None:
    """Return 1 where a fork cannot compute with threads, as OpenMP's are gone and may be waited for; else None."""
    torch = sys.modules.get("torch")
    if torch is None or torch.get_num_threads() == 1:
        return None
    try:
        in_a_fork(lambda: float(torch.ones(PARALLEL_ELEMENTS).sum()), PARALLEL_SECONDS)
    except ForkFailed:
        return 1
    return None
