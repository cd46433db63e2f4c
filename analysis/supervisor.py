"""Runs the engine for a claimed run and stores what it says, until one of them ends.

    the engine gave a result                     -> finished (exit status 3 and 5 too: a result is a result)
    it reported an error                         -> failed, its code and message
    it ended without either                      -> failed, `engine_died`, with its last words
    cancel requested / time is up / worker stops -> SIGTERM, SIGKILL after a grace -> cancelled / failed / interrupted
    the lease is lost                            -> killed, nothing written

Whatever happens, nothing leaves `supervise` while the engine lives or the run is still marked running.
"""

from __future__ import annotations

import json
import logging
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.conf import settings

from analysis import services
from analysis.engine_events import log_line
from analysis.engine_process import ENGINE_COMMAND, EngineProcess
from analysis.models import Run
from analysis.services import Lease, LogLine
from engine.result import Probe

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """How often the supervisor looks and writes, and how long the engine may take to obey."""

    tick_seconds: float = 0.2
    check_seconds: float = 1.0
    heartbeat_seconds: float = 5.0
    grace_seconds: float = 5.0
    stopping_grace_seconds: float = 1.0
    wall_grace_seconds: float = settings.RUN_GRACE_SECONDS


class Stop(StrEnum):
    """Why the supervisor ended the engine."""

    CANCELLED = "cancelled"
    TIME_OUT = "time_out"
    WORKER_STOPS = "worker_stops"
    LEASE_LOST = "lease_lost"


def supervise(
    run: Run,
    *,
    command: Sequence[str] = ENGINE_COMMAND,
    keep_open: Sequence[int] = (),
    should_stop: Callable[[], bool] = lambda: False,
    on_line: Callable[[LogLine], None] = lambda line: None,
    pace: Pace | None = None,
) -> int | None:
    """Run the engine for this claimed run. Returns the engine's exit status, None when it never started."""
    spec = json.dumps(run.spec, separators=(",", ":"))
    try:
        process = EngineProcess([*command, "--spec", spec, "--events"], keep_open=keep_open)
    except OSError as exc:
        message = f"The engine could not be started: {exc}"
        services.run_fail(run_id=run.pk, token=run.token, code="engine_not_started", message=message)
        return None
    watch = _Watch(run, process, should_stop, on_line, pace or Pace())
    try:
        watch.until_it_ends()
    except BaseException as exc:
        process.end()
        services.run_fail(run_id=run.pk, token=run.token, code="internal", message=f"The supervisor broke off: {exc!r}")
        raise
    watch.store_the_end()
    return process.exit_status


class _Watch:
    """One engine under watch: what it has said so far, and why it is being stopped, if it is."""

    def __init__(
        self,
        run: Run,
        process: EngineProcess,
        should_stop: Callable[[], bool],
        on_line: Callable[[LogLine], None],
        pace: Pace,
    ) -> None:
        self._lease = Lease(run_id=run.pk, token=run.token)
        self._process, self._should_stop, self._on_line, self._pace = process, should_stop, on_line, pace
        self._lines: list[LogLine] = []
        self._phase = ""
        self._result: dict[str, Any] | None = None
        self._error: dict[str, Any] | None = None
        self._stop: Stop | None = None
        now = time.monotonic()
        self._wall_ends_at = now + run.spec["time_budget_seconds"] + pace.wall_grace_seconds
        self._kill_at = self._check_at = self._beat_at = now

    def until_it_ends(self) -> None:
        """Listen, store and look, until the engine is dead and everything it said is taken in."""
        while self._process.exit_status is None:
            self._listen(self._pace.tick_seconds)
            self._look()
        self._process.end()
        self._listen(0)

    def store_the_end(self) -> None:
        """Write how it ended; every branch but a lost lease leaves the run in a final state."""
        if self._stop is Stop.LEASE_LOST:
            logger.warning("run %s: the lease is lost, what it measured since is discarded", self._lease["run_id"])
            return
        for words in self._process.last_words:
            self._lines.append(LogLine("info", f"stderr: {words}"))
        self._flush()
        if self._result is not None:
            self._store_result(self._result)
        elif self._stop is Stop.CANCELLED:
            services.run_mark_cancelled(**self._lease)
        elif self._stop is Stop.WORKER_STOPS:
            services.run_interrupt(**self._lease, message="The worker was stopped while this run was under way.")
        else:
            code, message = self._failure()
            services.run_fail(**self._lease, code=code, message=message, exit_status=self._process.exit_status)

    def _store_result(self, result: dict[str, Any]) -> None:
        status = self._process.exit_status
        try:
            services.run_finish(**self._lease, result=result, exit_status=status or 0)
        except (KeyError, TypeError) as exc:
            message = f"The engine's result lacks what this portal needs: {exc!r}"
            services.run_fail(**self._lease, code="bad_result", message=message, exit_status=status)

    def _failure(self) -> tuple[str, str]:
        """Code and message of a run that has no result and was not asked to stop."""
        if self._stop is Stop.TIME_OUT:
            return "time_out", "The engine was stopped: it went on long after its time budget."
        if self._error is not None:
            code, message = self._error.get("code"), self._error.get("message")
            return str(code or "engine_error")[:40], str(message or "no message")
        return "engine_died", describe_death(self._process.exit_status, self._process.last_words)

    def _listen(self, wait_seconds: float) -> None:
        for event in self._process.events(wait_seconds):
            try:
                self._take_in(event)
            except (KeyError, TypeError, ValueError) as exc:
                self._say(LogLine("warning", f"Skipped a {event['event']} event this portal cannot read: {exc!r}"))

    def _take_in(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "probe":
                probe = Probe.from_dict(event["probe"])
                self._hold(services.measurement_add(**self._lease, probe=probe))
            case "phase":
                self._phase, self._beat_at = str(event["phase"]), 0.0
            case "result":
                self._result = dict(event["result"])
            case "error":
                self._error = dict(event["error"])
        if line := log_line(event):
            self._say(line)

    def _say(self, line: LogLine) -> None:
        self._lines.append(line)
        self._on_line(line)

    def _look(self) -> None:
        now = time.monotonic()
        if now >= self._beat_at:
            self._beat_at = now + self._pace.heartbeat_seconds
            self._hold(services.run_heartbeat(**self._lease, phase=self._phase))
        if now >= self._check_at:
            self._check_at = now + self._pace.check_seconds
            self._flush()
            if services.run_wants_cancel(run_id=self._lease["run_id"]):
                self._end(Stop.CANCELLED)
        if self._should_stop():
            self._end(Stop.WORKER_STOPS)
        if now >= self._wall_ends_at:
            self._end(Stop.TIME_OUT)
        if self._stop and now >= self._kill_at:
            self._process.signal(signal.SIGKILL)

    def _flush(self) -> None:
        if self._lines:
            lines, self._lines = self._lines, []
            self._hold(services.log_add(**self._lease, lines=lines))

    def _hold(self, is_held: bool) -> None:
        if not is_held:
            self._end(Stop.LEASE_LOST)

    def _end(self, why: Stop) -> None:
        """Ask the engine to end, once; a worker that stops has no time to wait long."""
        if self._stop is not None:
            return
        is_urgent = why in (Stop.WORKER_STOPS, Stop.LEASE_LOST)
        grace_seconds = self._pace.stopping_grace_seconds if is_urgent else self._pace.grace_seconds
        self._stop, self._kill_at = why, time.monotonic() + grace_seconds
        self._process.signal(signal.SIGTERM)


def describe_death(exit_status: int | None, last_words: Sequence[str]) -> str:
    """`The engine was ended by signal 11 (Segmentation fault) and gave no result. Its last words: ...`."""
    if exit_status is not None and exit_status < 0:
        how = f"was ended by signal {-exit_status} ({signal.strsignal(-exit_status)})"
    else:
        how = f"ended with exit status {exit_status}"
    words = f" Its last words: {' | '.join(last_words[-5:])}" if last_words else ""
    return f"The engine {how} and gave no result.{words}"
