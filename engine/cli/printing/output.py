"""Complete output of a command, or a quiet end of it.

A character that a terminal or file cannot represent is replaced by `?`: no heading loses the result of a long run. When
the reader of the output has closed it (`| head -1`), the command ends with 141, the status that a shell reports for a
program ended by SIGPIPE, such as `yes | head -1`.
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

from ...errors import DeviceBusy, EngineError
from ...machine.execution import event_of
from .stopped import describe_stop
from .terminal import say, say_error

EXIT_INTERRUPTED, EXIT_STOPPED = 128 + signal.SIGINT, 128 + signal.SIGTERM
EXIT_NOBODY_READS = 141  # 128 + SIGPIPE, which Windows does not have


def run_command(command: Callable[[], int]) -> int:
    """Run `command` and bring out what it prints; returns the exit status.

    After Ctrl-C or SIGTERM notes of the exception say what is known and stored: see `Console` and `Reporting`.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        status = command()
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):  # Python would flush them at its end and report the broken pipe
            os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        return EXIT_NOBODY_READS
    except (KeyboardInterrupt, SystemExit) as error:
        is_interrupted = isinstance(error, KeyboardInterrupt)
        if not is_interrupted and getattr(error, "code", None) != EXIT_STOPPED:
            raise
        say(describe_stop(getattr(error, "__notes__", ())), sys.stderr)
        return EXIT_INTERRUPTED if is_interrupted else EXIT_STOPPED
    return status


def print_json(content: Any) -> None:
    """Print JSON as one line and flush it: the reader of events waits for it."""
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def info_event(text: str) -> dict[str, Any]:
    return event_of("log", level="info", message=text)


def print_failure(error: EngineError, *, started: float, events: bool) -> int:
    if events:
        print_json(event_of("error", time.monotonic() - started, error=error.to_dict()))
    say_error(f"{error}{'; --wait-for-device waits until it is free' if isinstance(error, DeviceBusy) else ''}")
    return error.exit_status
