"""The process behind `tune(..., warm=True)`: imports a function's module once, then forks a start for each request.

In and out are JSON lines. In: a batch size, what is watched, and where the files of the start lie. Out: `refused` with
the reason, or for each request `started` with a process id and `ended` with an exit status.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, TextIO

from ....machine.parent import die_with_parent
from ..spec import FunctionSpec
from .fork import begin_fork, why_no_fork
from .launch import LOOK_SECONDS, Place, Watching


def main(settings: dict[str, Any], parent: int) -> None:
    die_with_parent(parent)
    out = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)  # what the module prints is no answer
    spec = FunctionSpec(**settings)
    module, _, name = spec.function.partition(":")
    make_step = attrgetter(name)(import_module(module))
    if "torch" in sys.modules:
        import_module("torch._dynamo")  # the first optimizer of each fork would, for a second
    if (reason := why_no_fork()) is not None:
        _say(out, event="refused", message=f"{spec.function} cannot be started warm: {reason} while it was imported")
        return
    begin = begin_fork(make_step, spec)
    while line := sys.stdin.readline():
        request = json.loads(line)
        place = Place(*(Path(request[each]) for each in ("notes", "out", "log")))
        running = begin(request["batch_size"], Watching(**request["watching"]), place)
        _say(out, event="started", pid=running.pid)
        while not running.has_ended():
            time.sleep(LOOK_SECONDS)
        _say(out, event="ended", status=running.end())


def _say(out: TextIO, **message: Any) -> None:
    out.write(json.dumps(message) + "\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), int(sys.argv[2]))
