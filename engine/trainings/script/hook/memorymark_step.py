"""Runs the optimizer steps of a function `make_step`: of a module in a new process, or in a fork of a program.

    python -m memorymark_step package.module:function 32

The watch ends the process when enough steps were seen.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from operator import attrgetter
from typing import Any

import memorymark_watch
from memorymark_optimizers import BY_HAND

CALLS_WITHOUT_STEP = 100


def run(make_step: Any, batch_size: int, watched: Any) -> None:
    watched.arm(importlib.import_module("torch"))
    step, calls = make_step(batch_size), 0
    if not callable(step):
        raise TypeError(f"make_step returned {type(step).__name__}: it must return what runs one optimizer step")
    while True:
        step()
        calls += 1
        if set(watched.steps.counts) - watched.steps.optimizers - {BY_HAND}:
            raise RuntimeError("an optimizer was made outside make_step: make it inside, each size begins anew")
        if calls == CALLS_WITHOUT_STEP and not watched.steps.counts:
            raise RuntimeError(f"no optimizer of torch made a step in {calls} calls of what make_step returned")


def live_as_fork(make_step: Any, batch_size: int, settings: Any, environment: Any, log: str) -> None:
    """Run `make_step` in a fork without its parent's exit handlers and terminal; never returns."""
    try:
        _detach(log)
        os.environ.update(environment)
        watched = memorymark_watch.begin(settings)
        if settings["threads"]:
            importlib.import_module("torch").set_num_threads(settings["threads"])
        try:
            run(make_step, batch_size, watched)
        except BaseException as exc:
            watched.end("error", type(exc).__name__, str(exc))
            raise
    except BaseException:  # noqa: BLE001 - the program that was forked reads it in the log
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def _detach(log: str) -> None:
    os.setsid()
    for descriptor, path, flags in ((0, os.devnull, os.O_RDONLY), (1, log, os.O_WRONLY | os.O_APPEND)):
        opened = os.open(path, flags)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.dup2(1, 2)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(os.dup(number), mode, closefd=True) for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )


if __name__ == "__main__":
    target, size = sys.argv[1:]
    module, _, name = target.partition(":")
    run(attrgetter(name)(importlib.import_module(module)), int(size), memorymark_watch.watched)
