"""Keeps child processes running: starts them, restarts them when they die, and ends them all in time."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from analysis.workers.engine_process import dies_with_its_parent
from analysis.workers.strays import adopt_orphans, kill_strays

logger = logging.getLogger(__name__)

_BACK_OFF_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_STEADY_SECONDS = 60.0


@dataclass
class Child:
    """One child process. It leads its own session, so a Ctrl-C in the terminal reaches the manager alone."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    restart_at: float | None = None
    deaths_in_a_row: int = 0

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def exit_status(self) -> int | None:
        return None if self.process is None else self.process.returncode

    def start(self) -> None:
        self.process = subprocess.Popen(
            [*dies_with_its_parent(), *self.command],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.started_at, self.restart_at = time.monotonic(), None

    def send(self, number: signal.Signals) -> None:
        """Send a signal: SIGKILL to its whole session, any other to the child alone, which stops its own children."""
        if self.process is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            if number == signal.SIGKILL:
                os.killpg(self.process.pid, number)
            else:
                os.kill(self.process.pid, number)


class ProcessManager:
    """The children of `manage.py up`. With `adopts_orphans` it also ends the orphans that this process adopts."""

    def __init__(self, *, adopts_orphans: bool = False) -> None:
        self.children: list[Child] = []
        self._adopts_orphans = adopts_orphans
        if adopts_orphans:
            adopt_orphans()

    def start(self, children: Iterable[Child]) -> None:
        for child in children:
            self.children.append(child)
            child.start()

    def look(self) -> None:
        """Restart children that died, each time in a row with a longer delay."""
        now = time.monotonic()
        self._end_strays()
        for child in self.children:
            if child.is_alive:
                continue
            if child.restart_at is None:
                lived_long = now - child.started_at >= _STEADY_SECONDS
                child.deaths_in_a_row = 1 if lived_long else child.deaths_in_a_row + 1
                wait_seconds = _BACK_OFF_SECONDS[min(child.deaths_in_a_row, len(_BACK_OFF_SECONDS)) - 1]
                child.restart_at = now + wait_seconds
                logger.error("%s ended (%s); restarting it in %s s", child.name, child.exit_status, wait_seconds)
                child.send(signal.SIGKILL)  # processes it may have left in its session
            elif now >= child.restart_at:
                child.start()

    def stop(self, *, seconds: float) -> None:
        """Send SIGTERM to each, and SIGKILL to the sessions of those that do not end in time."""
        for child in self.children:
            child.send(signal.SIGTERM)
        until = time.monotonic() + seconds
        while any(child.is_alive for child in self.children) and time.monotonic() < until:
            time.sleep(0.05)
        self.kill()

    def kill(self) -> None:
        for child in self.children:
            child.send(signal.SIGKILL)
        for child in self.children:
            if child.process is not None:
                child.process.wait()
        self._end_strays(is_stop=True)

    def _end_strays(self, *, is_stop: bool = False) -> None:
        if self._adopts_orphans:
            own = {child.process.pid for child in self.children if child.process is not None}
            kill_strays(keep=own, is_stop=is_stop)
