"""What a command prints must arrive whole, or end the command quietly.

A terminal or file that lacks a character gets `?` in its place: the result of a long run must not be lost to its
heading. When whoever read the output is gone (`| head -1`), the command ends with 141, which is what a shell reports
of a program that SIGPIPE ended, such as `yes | head -1`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Any

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
        _print_no_more()
        return EXIT_NOBODY_READS
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: nothing is kept\n")
        return EXIT_INTERRUPTED
    return status


def print_json(content: Any) -> None:
    """One line, at once: whoever reads events waits for it."""
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def _print_no_more() -> None:
    """Give what is still buffered to nobody: Python flushes at its end, and would complain of the broken pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
