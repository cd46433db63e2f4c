"""The engine as a child process: start, reading and end. Knows nothing of runs or the database.

Its stdout is always drained by a thread, so a slow database never stalls a measurement; its stderr (what
libraries print) is reduced to its last lines. It leads a session, and every process of that session ends with it.
"""

from __future__ import annotations

import os
import queue
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

from django.conf import settings

from analysis.runs.services import LOG_LINES_PER_ATTEMPT
from analysis.workers.engine_env import engine_environment
from analysis.workers.engine_events import garbage_event, is_result, parse_event
from engine.text.masking import masked_text
from engine.text.noise import is_noise
from engine.text.units import MIB

_LINE_BYTES_MAX = MIB
_LAST_WORDS, _WORDS_LENGTH = 50, 4_000
_OPEN_FILES_MAX = 16_384


class EngineProcess:
    """One child, which inherits the descriptors `keep_open`, so that the device stays locked while the child lives."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        input_text: str = "",
        environment: Mapping[str, str] | None = None,
        keep_open: Sequence[int] = (),
    ) -> None:
        """Start the process. `input_text` becomes its standard input; `environment` is added to what it inherits."""
        with tempfile.TemporaryFile("w+") as stdin:
            stdin.write(input_text)
            stdin.seek(0)
            self._process = subprocess.Popen(
                [*dies_with_its_parent(), *command],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=engine_environment(os.environ) | dict(environment or {}),
                cwd=settings.BASE_DIR,
                start_new_session=True,
                pass_fds=keep_open,
                umask=0o077,
            )
        _limit(self._process.pid)
        self.progress: dict[str, Any] | None = None  # the newest one; older ones are of no use
        self.heard_at = time.monotonic()
        self.has_cut_result = False  # the line of its result was too long to be read
        self._events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._last_lines: deque[str] = deque(maxlen=_LAST_WORDS)
        self._readers = (self._read_with(self._read_events), self._read_with(self._read_last_lines))

    @property
    def exit_status(self) -> int | None:
        """Return the exit status; None while the process lives, negative for the signal that ended it."""
        return self._process.poll()

    @property
    def last_lines(self) -> list[str]:
        return list(self._last_lines)

    def events(self, wait_seconds: float) -> Iterator[dict[str, Any]]:
        """Return the events since the last call; waits up to `wait_seconds` for the first."""
        with suppress(queue.Empty):
            yield self._events.get(timeout=wait_seconds)
            while True:
                yield self._events.get_nowait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole process group, so that the engine's own children get it too."""
        with suppress(ProcessLookupError, PermissionError):  # macOS reports EPERM for a group of zombies
            os.killpg(self._process.pid, number)

    def end(self, wait_seconds: float = 30.0) -> bool:
        """Kill the process group, and read its output. False: the kernel holds it in a driver call, with its lock."""
        self.signal(signal.SIGKILL)
        try:
            self._process.wait(wait_seconds)
        except subprocess.TimeoutExpired:
            return False
        for reader in self._readers:
            reader.join(timeout=2)
        return True

    def _read_with(self, target: Any) -> threading.Thread:
        reader = threading.Thread(target=target, daemon=True)
        reader.start()
        return reader

    def _read_events(self) -> None:
        log_events = 0
        for line in _lines(self._process.stdout):
            event = parse_event(line)
            if event is not None:
                self.heard_at = time.monotonic()
                if event["event"] == "progress":
                    self.progress = event
                    continue
            event = event or garbage_event(line)
            if len(line) == _LINE_BYTES_MAX and is_result(line):
                self.has_cut_result = True
            # lines beyond the log's limit are dropped here, so that a flood cannot fill this process's memory either
            log_events += event["event"] == "log"
            if event["event"] != "log" or log_events <= LOG_LINES_PER_ATTEMPT:
                self._events.put(event)

    def _read_last_lines(self) -> None:
        for line in _lines(self._process.stderr):
            text = line.decode(errors="replace").strip()
            if not is_noise(text):
                self._last_lines.append(masked_text(text[:_WORDS_LENGTH]))


def dies_with_its_parent() -> tuple[str, ...]:
    """Return a command prefix by which the Linux kernel kills the child when its parent dies, even by kill -9."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    return (setpriv, "--pdeathsig", "KILL") if setpriv else ()


def _limit(pid: int) -> None:
    """Limit core dumps, as large as the memory, and open files on Linux; CUDA reserves too much memory for a cap."""
    if sys.platform != "linux":
        return
    with suppress(ProcessLookupError, PermissionError):
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        files = min(hard, _OPEN_FILES_MAX)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (files, files))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


def _lines(stream: IO[bytes] | None) -> Iterator[bytes]:
    """Read lines; one of more than 1 MiB is truncated."""
    if stream is None:
        return
    with stream:
        while line := stream.readline(_LINE_BYTES_MAX):
            rest = line
            while len(rest) == _LINE_BYTES_MAX and not rest.endswith(b"\n"):
                rest = stream.readline(_LINE_BYTES_MAX)
            yield line
