"""Runs the engine for a claimed run and stores its events, until one of them ends.

    the engine gave a result                     -> finished (exit status 3 and 5 too: a result is a result)
    it reported an error                         -> failed, its code and message
    it ended without either, or hung             -> as `analysis.runs.queue.retry_policy` says: once more, or failed
    cancel requested / time is up                -> SIGTERM, SIGKILL after a grace -> cancelled / failed
    the worker stops                             -> the same, and the run goes back into the queue
    the lease is lost                            -> killed, nothing written

While the database is away the engine goes on: its events are buffered here, heartbeats are skipped, and the outcome
is stored as soon as possible. Where even that fails, the result remains in the attempt's folder.
"""

from __future__ import annotations

import json
import logging
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.conf import settings

from analysis.database import DATABASE_AWAY, connections_release, write_with_retries
from analysis.models import Run
from analysis.runs import services
from analysis.runs.commands import stores_output
from analysis.runs.kinds import rules_of
from analysis.runs.queue.resume import earlier_attempt
from analysis.runs.queue.retry_policy import Cause
from analysis.runs.services import Lease, LogLine
from analysis.workers.attempt_events import AttemptEvents
from analysis.workers.attempt_files import NOT_STORABLE, attempt_folder_remove, result_file
from analysis.workers.engine_process import EngineProcess
from engine.describe.time_left import TimeLeft
from engine.errors import SpecError
from engine.estimate.tracing.hidden_devices import HIDDEN
from engine.machine.device_lock import inherited_by_child, sign
from engine.questions.kinds import subcommand

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SupervisorTimeouts:
    tick_seconds: float = 0.1
    check_seconds: float = 1.0
    heartbeat_seconds: float = settings.RUN_HEARTBEAT_SECONDS
    away_seconds: float = 2.0
    grace_seconds: float = 5.0
    stopping_grace_seconds: float = 0.4
    stop_notice_seconds: float = 0.5
    kill_seconds: float = 30.0
    wall_grace_seconds: float = settings.RUN_GRACE_SECONDS
    stall_seconds: float = settings.RUN_STALL_SECONDS
    preparing_seconds: float = 1500.0  # the engine's own limit for imports and the model is 1,200
    end_seconds: float = 900.0


_KILL_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # others are crashes


class Stop(StrEnum):
    CANCELLED = "cancelled"
    TIME_OUT = "time_out"
    STALLED = "stalled"
    WORKER_STOPS = "worker_stops"
    LEASE_LOST = "lease_lost"


class GivenUp(Exception):
    """The worker stops while the database is away: the outcome is not stored, and is recovered later."""


def supervise(
    run: Run,
    *,
    command: Sequence[str] | None = None,
    keep_open: Sequence[int] = (),
    should_stop: Callable[[], bool] = lambda: False,
    on_line: Callable[[LogLine], None] = lambda line: None,
    on_tick: Callable[[], None] = lambda: None,
    timeouts: SupervisorTimeouts | None = None,
) -> int | None:
    """Run the engine for this claimed run. Returns the engine's exit status, None when it never started."""
    try:
        process = start_engine(run, settings.ENGINE_COMMAND if command is None else command, keep_open)
    except (OSError, SpecError) as exc:  # SpecError: of a command that this host does not have
        message = f"The engine could not be started: {exc}"
        services.run_fail(run_id=run.pk, token=run.token, code="engine_not_started", message=message)
        return None
    watch = _Watch(run, process, should_stop, on_line, on_tick, timeouts or SupervisorTimeouts())
    try:
        watch.watch_until_end()
    except BaseException as exc:
        process.end()
        services.run_fail(run_id=run.pk, token=run.token, code="internal", message=f"The supervisor failed: {exc!r}")
        raise
    watch.store_outcome()
    attempt_folder_remove(run)
    return process.exit_status


def start_engine(run: Run, command: Sequence[str], keep_open: Sequence[int]) -> EngineProcess:
    rules = rules_of(run)
    may_resume = rules.takes_probes and (run.attempt > 1 or run.takes_over_id)
    measured = earlier_attempt(run) if may_resume else None
    earlier = "" if measured is None else json.dumps(measured)
    arguments = [*command, *engine_arguments(run), *(["--resume", "-"] if earlier else [])]
    if not run.needs_device:  # it runs without a card's lock, and so must not use a card
        return EngineProcess(arguments, environment=HIDDEN, keep_open=keep_open)
    for lock in keep_open:
        sign(lock, f"run {run.pk} of the portal")
    environment = _only_cards(run) | inherited_by_child(keep_open)
    return EngineProcess(arguments, input_text=earlier, environment=environment, keep_open=keep_open)


def engine_arguments(run: Run) -> list[str]:
    """Return the arguments of `python -m engine` for a run: its spec, and this portal's calibrations of its cards."""
    rules = rules_of(run)
    spec = rules.spec_to_start(run) | _engine_device(run)
    arguments = [*filter(None, [subcommand(run.kind)])]
    arguments += ["--spec", json.dumps(spec, separators=(",", ":")), "--events"]
    if run.needs_device:
        arguments += ["--result-file", str(result_file(run))]
    for calibration in rules.calibrations(run):
        path = result_file(run).with_name(f"calibration-{calibration['gpu_id']}.json")
        path.write_text(json.dumps(calibration))
        arguments += ["--calibration", str(path)]
    return arguments


def _engine_device(run: Run) -> dict[str, str]:
    if run.device_count > 1:
        return {"device": run.requested_kind}
    return {"device": "cuda:0"} if _only_cards(run) else {}


def _only_cards(run: Run) -> dict[str, str]:
    """Return the environment that shows the engine only the run's cards; empty for one card of another maker."""
    cards = [run.device] if run.device_count == 1 else sorted(run.held_devices.all(), key=services.index_of)
    of_cuda = [card for card in cards if card is not None and card.kind == "cuda"]
    if not of_cuda:
        return {}
    if all(card.uuid and card.compute_capability for card in of_cuda):
        return {"CUDA_VISIBLE_DEVICES": ",".join(card.uuid for card in of_cuda)}
    if run.device_count == 1:
        return {}
    return {"CUDA_VISIBLE_DEVICES": ",".join(str(services.index_of(card)) for card in of_cuda)}


class _Watch:
    """One engine under watch: its events so far, and the reason it is being stopped, if it is."""

    def __init__(
        self,
        run: Run,
        process: EngineProcess,
        should_stop: Callable[[], bool],
        on_line: Callable[[LogLine], None],
        on_tick: Callable[[], None],
        timeouts: SupervisorTimeouts,
    ) -> None:
        self._lease = Lease(run_id=run.pk, token=run.token)
        self._process, self._should_stop, self._timeouts = process, should_stop, timeouts
        self._on_tick = on_tick
        host = None if stores_output(run.spec) else socket.gethostname()
        time_left = TimeLeft(run.spec)
        self._events = AttemptEvents(self._lease, time_left=time_left, on_line=on_line, output_stays_on=host)
        self._stop: Stop | None = None
        now = time.monotonic()
        self._wall_ends_at = now + run.spec["time_budget_seconds"] + timeouts.wall_grace_seconds
        self._kill_at = self._write_at = self._beat_at = now
        self._is_held_by_kernel = False

    def watch_until_end(self) -> None:
        """Read events, store them and check, until the engine is dead and all its events are read."""
        while self._process.exit_status is None and not self._is_held_by_kernel:
            self._read_events(self._timeouts.tick_seconds)
            self._check(time.monotonic())
        self._is_held_by_kernel = not self._process.end(wait_seconds=1.0)
        self._read_events(0)
        self._await_worker_stop()

    def _await_worker_stop(self) -> None:
        """Wait for the worker's stop signal after a signal ended the engine: a service manager sends both at once."""
        is_worker_dead = (self._events.error or {}).get("code") == Cause.ENGINE_WORKER_DIED
        if not is_worker_dead and ending_signal(self._process.exit_status) is None:
            return
        until = time.monotonic() + self._timeouts.stop_notice_seconds
        while self._stop is None and time.monotonic() < until:
            if self._should_stop():
                self._stop = Stop.WORKER_STOPS
            time.sleep(self._timeouts.tick_seconds)

    def store_outcome(self) -> None:
        """Store how the attempt ended; every branch but a lost lease leaves the run in its true state."""
        if self._stop is Stop.LEASE_LOST:
            logger.warning("run %s: the lease is lost; later measurements are discarded", self._lease["run_id"])
            return
        for line in () if self._events.is_error_cut else self._process.last_lines:
            self._events.add_log_line(LogLine("info", f"stderr: {line}"))
        write_with_retries(self._write_outcome, seconds=self._timeouts.end_seconds, between=self._before_retry)

    def _before_retry(self) -> None:
        self._on_tick()
        if self._should_stop():
            raise GivenUp(f"run {self._lease['run_id']}: the database is away and the worker stops")

    def _write_outcome(self) -> None:
        self._events.store()
        status = self._process.exit_status
        if self._events.result is not None:
            try:
                services.run_finish(**self._lease, result=self._events.result, exit_status=status or 0)
            except NOT_STORABLE as exc:
                message = f"The portal cannot store the engine's result: {exc!r}"
                services.run_fail(**self._lease, code="bad_result", message=message, exit_status=status)
        elif self._stop is Stop.CANCELLED:
            services.run_mark_cancelled(**self._lease, message=self._kernel_lines().strip())
        else:
            code, message = self._failure()
            services.run_fail(**self._lease, code=code, message=message + self._kernel_lines(), exit_status=status)

    def _failure(self) -> tuple[str, str]:
        status = self._process.exit_status
        if self._stop is Stop.WORKER_STOPS:
            return Cause.WORKER_STOPPED, "The worker was stopped while this run was under way."
        if self._stop is Stop.TIME_OUT:
            return "time_out", "The engine was stopped: it ran far beyond its time budget."
        if self._stop is Stop.STALLED:
            return Cause.STALLED, "The engine was stopped: it made no progress for too long."
        if self._events.error is not None:
            return self._events.failure
        if self._process.has_cut_result:
            return "bad_result", "The engine's result is a line of more than 1 MiB, which the portal does not read."
        return cause_of_death(status), describe_death(status, self._process.last_lines)

    def _kernel_lines(self) -> str:
        if not self._is_held_by_kernel:
            return ""
        return " The engine could not be killed: a driver call holds it. Its device stays locked until it has ended."

    def _read_events(self, wait_seconds: float) -> None:
        self._events.take(events := list(self._process.events(wait_seconds)))
        for event in events:
            match event["event"]:
                case "probe":
                    self._write_at = min(self._write_at, time.monotonic())
                case "phase":
                    self._beat_at = self._write_at = 0.0

    def _check(self, now: float) -> None:
        self._on_tick()
        if now >= self._write_at:
            self._write(now)
        if self._should_stop():
            self._stop_engine(Stop.WORKER_STOPS)
        if now >= self._wall_ends_at:
            self._stop_engine(Stop.TIME_OUT)
        is_preparing = self._events.phase in ("", "estimating", "preparing", "compiling", "gradients")
        preparing_seconds = self._timeouts.preparing_seconds if is_preparing else 0.0
        if now - self._process.heard_at >= max(preparing_seconds, self._timeouts.stall_seconds):
            self._stop_engine(Stop.STALLED)
        if self._stop and now >= self._kill_at:
            self._process.signal(signal.SIGKILL)
            self._is_held_by_kernel = now >= self._kill_at + self._timeouts.kill_seconds

    def _write(self, now: float) -> None:
        try:
            self._require_lease(self._events.store())
            if now >= self._beat_at:
                self._require_lease(services.run_heartbeat(**self._lease, phase=self._events.phase))
                self._beat_at = now + self._timeouts.heartbeat_seconds
            if services.run_wants_cancel(run_id=self._lease["run_id"]):
                self._stop_engine(Stop.CANCELLED)
            self._write_at = now + self._timeouts.check_seconds
        except DATABASE_AWAY as exc:
            logger.warning("run %s: the database is away: %s", self._lease["run_id"], str(exc).splitlines()[:1])
            connections_release()
            self._write_at = time.monotonic() + self._timeouts.away_seconds

    def _require_lease(self, is_held: bool) -> None:
        if not is_held:
            self._stop_engine(Stop.LEASE_LOST)

    def _stop_engine(self, why: Stop) -> None:
        """Send SIGTERM to the engine, once. The grace is short when the worker itself is stopping."""
        if self._stop is not None:
            return
        is_urgent = why in (Stop.WORKER_STOPS, Stop.LEASE_LOST)
        grace_seconds = self._timeouts.stopping_grace_seconds if is_urgent else self._timeouts.grace_seconds
        self._stop, self._kill_at = why, time.monotonic() + grace_seconds
        self._process.signal(signal.SIGTERM)


def cause_of_death(exit_status: int | None) -> str:
    number = ending_signal(exit_status)
    if number is None:
        return "engine_died"
    return Cause.ENGINE_KILLED if number in _KILL_SIGNALS else Cause.ENGINE_CRASHED


def ending_signal(exit_status: int | None) -> int | None:
    """Return the signal that ended a process, also by an exit with 128 plus its number; None without a signal."""
    number = 0 if exit_status is None else -exit_status if exit_status < 0 else exit_status - 128
    return number if number in set(signal.Signals) else None


def describe_death(exit_status: int | None, last_lines: Sequence[str]) -> str:
    """Write `The engine was ended by signal 11 (Segmentation fault) and gave no result. Its last output: ...`."""
    if (number := ending_signal(exit_status)) is not None:
        how = f"was ended by signal {number} ({signal.strsignal(number)})"
    else:
        how = f"ended with exit status {exit_status}"
    tail = f" Its last output: {' | '.join(last_lines[-5:])}" if last_lines else ""
    return f"The engine {how} and gave no result.{tail}"
