"""Runs work in a forked process, which must not run in this one because it may crash or have side effects.

Loads no torch. Linux and other systems that fork; `os.fork` is missing on Windows.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

from ..errors import EngineError

MESSAGE_LENGTH = 500


class ForkFailed(Exception):
    """The forked process raised something, crashed, or took too long; the text says which."""

    status: int | None = None
    """Its exit status, negative for a signal; None where it ended normally."""


def in_a_fork(work: Callable[[], Any], seconds: int) -> Any:
    """Return the JSON value of `work`, run in a fork that then ends. Raises its EngineError, or ForkFailed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _answer(work, writing, seconds)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer_text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0:
        ended = f"it was ended by {signal.Signals(-status).name}" if status < 0 else f"it ended with status {status}"
        failure = ForkFailed(f"it took more than {seconds} s" if status == -signal.SIGALRM else ended)
        failure.status = status
        raise failure
    answer = json.loads(answer_text)
    if "engine_error" in answer:
        raise EngineError.from_dict(answer["engine_error"])
    if "error" in answer:
        raise ForkFailed(answer["error"])
    return answer["result"]


def _answer(work: Callable[[], Any], writing: int, seconds: int) -> None:
    """Run `work` in the forked process and write its result. Never returns: exit handlers belong to the parent."""
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        try:
            answer = {"result": work()}
        except EngineError as exc:
            answer = {"engine_error": exc.to_dict()}
        except Exception as exc:  # noqa: BLE001 - raised again where the answer is read
            answer = {"error": f"{type(exc).__name__}: {str(exc).strip()[:MESSAGE_LENGTH]}"}
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(json.dumps(answer).encode())
        status = 0
    finally:
        os._exit(status)
