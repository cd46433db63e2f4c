"""Complete output of a command, or a quiet end of it.

A character that a terminal or file cannot represent is replaced by `?`, so that the result of a long run is not lost
because of its heading. When the reader of the output has closed it (`| head -1`), the command ends with 141, the
status that a shell reports for a program ended by SIGPIPE, such as `yes | head -1`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from io import TextIOWrapper
from typing import Any

from ..errors import DeviceBusy, EngineError
from .options import WAIT_REMEDY

EXIT_INTERRUPTED = 128 + signal.SIGINT
EXIT_NOBODY_READS = 141  # 128 + SIGPIPE, which Windows does not have


def run_command(command: Callable[[], int]) -> int:
    """Run `command` and bring out what it prints; the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        status = command()
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return EXIT_NOBODY_READS
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: no result is stored\n")
        return EXIT_INTERRUPTED
    return status


def print_json(content: Any) -> None:
    """Print JSON as one line and flush it: the reader of events waits for it."""
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def info_event(text: str) -> dict[str, Any]:
    """Return the event of a line for people, before anything is measured."""
    return {"event": "log", "seconds": 0.0, "level": "info", "message": text}


def print_failure(error: EngineError, *, started: float, events: bool) -> int:
    """Print why a command that measures ended, also as an event where those are wanted; the exit status."""
    if events:
        print_json({"event": "error", "seconds": round(time.monotonic() - started, 3), "error": error.to_dict()})
    remedy = WAIT_REMEDY if isinstance(error, DeviceBusy) else ""
    sys.stderr.write(f"error: {error}{remedy}\n")
    return error.exit_status


def _discard_output() -> None:
    """Discard buffered output: Python would flush it at its end and report the broken pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
