"""The only writer of runs and of what belongs to them. Pages, API, admin and commands call these.

A running run is written by its owner alone: every such write says WHERE id AND token AND running, and
answers False when that found no row. False means the lease is lost: kill the engine, write nothing more.
The transitions are drawn in `analysis.models.Run`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import uuid4

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now
from django_q.tasks import async_task

from analysis.models import Device, Measurement, Run, RunLog, State
from analysis.results import probe_columns, result_columns, storable_text
from engine.errors import SpecError
from engine.result import Probe
from engine.spec import RunSpec
from engine.units import format_bytes

if TYPE_CHECKING:
    from django.contrib.auth.models import User

LOG_LINES_PER_ATTEMPT = 5_000
LOG_MESSAGE_LENGTH = 2_000
_CLAIM_CANDIDATES = 16


class Lease(TypedDict):
    """What the owner of a running run shows with every write."""

    run_id: int
    token: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line for the run's log."""

    level: str
    message: str


def run_create(*, spec: RunSpec, device: Device, requested_by: User | None = None) -> Run:
    """Store a queued run and wake the device's worker. Both commit together: the queue is in the same database.

    Raises SpecError when this device takes no runs, or the time budget is above this server's.
    """
    _refuse_what_cannot_run(spec, device)
    with transaction.atomic():
        run = Run.objects.create(
            model=spec.model,
            device=device,
            requested_by=requested_by,
            spec=replace(spec, device=device.device).to_dict(),
            precision=spec.precision,
            optimizer=spec.optimizer,
            current_batch_size=spec.current_batch_size,
        )
        worker_wake(device=device)
    return run


def worker_wake(*, device: Device) -> None:
    """Tell the device's worker to look. The message carries nothing: the rows are the truth."""
    async_task("analysis.tasks.wake", cluster=device.queue_name, ack_failure=True)


def run_claim(*, device: Device, owner: str, run_id: int | None = None) -> Run | None:
    """Make the oldest waiting run (or the one named) this owner's. None: nothing waits, or the device is busy."""
    waiting = Run.objects.waiting_for(device)
    if run_id is not None:
        waiting = waiting.filter(pk=run_id)
    for candidate in list(waiting.values_list("pk", flat=True)[:_CLAIM_CANDIDATES]):
        try:
            if _claim(candidate, owner):
                return Run.objects.select_related("device").get(pk=candidate)
        except IntegrityError:  # one_running_run_per_device
            return None
    return None


def run_heartbeat(*, run_id: int, token: str, phase: str) -> bool:
    """Say that the owner lives, and what the engine is doing."""
    return bool(Run.objects.held_by(run_id, token).update(heartbeat_at=Now(), phase=phase[:20]))


def measurement_add(*, run_id: int, token: str, probe: Probe) -> bool:
    """Store a probe as soon as it is known."""
    with transaction.atomic():
        attempt = _held_attempt(run_id, token)
        if attempt is None:
            return False
        sequence = 1 + Measurement.objects.filter(run_id=run_id, attempt=attempt).count()
        Measurement.objects.create(run_id=run_id, attempt=attempt, sequence=sequence, **probe_columns(probe))
    return True


def log_add(*, run_id: int, token: str, lines: Sequence[LogLine]) -> bool:
    """Store log lines in one transaction. The last line that an attempt may have says that it is the last."""
    with transaction.atomic():
        attempt = _held_attempt(run_id, token)
        if attempt is None:
            return False
        stored = RunLog.objects.filter(run_id=run_id, attempt=attempt).count()
        RunLog.objects.bulk_create(
            RunLog(
                run_id=run_id,
                attempt=attempt,
                sequence=sequence,
                level=line.level,
                message=storable_text(line.message, LOG_MESSAGE_LENGTH),
            )
            for sequence, line in enumerate(_lines_with_room(lines, stored), start=stored + 1)
        )
    return True


def run_finish(*, run_id: int, token: str, result: Mapping[str, Any], exit_status: int = 0) -> bool:
    """running -> finished, with the figures that lists sort on copied out of the result."""
    columns = result_columns(result)
    return _end(run_id, token, State.FINISHED, result=dict(result), exit_status=exit_status, **columns)


def run_fail(*, run_id: int, token: str, code: str, message: str, exit_status: int | None = None) -> bool:
    """running -> failed, with the reason in words."""
    return _end(run_id, token, State.FAILED, error_code=code, error_message=message, exit_status=exit_status)


def run_cancel(*, run_id: int) -> bool:
    """queued -> cancelled at once; a running one is asked to stop. False: it was over already."""
    waiting = Run.objects.queued().filter(pk=run_id)
    if waiting.update(state=State.CANCELLED, cancel_requested=True, finished_at=Now()):
        return True
    return bool(Run.objects.running().filter(pk=run_id).update(cancel_requested=True))


def run_wants_cancel(*, run_id: int) -> bool:
    """Whether somebody asked for this run to stop."""
    return Run.objects.filter(pk=run_id, cancel_requested=True).exists()


def run_mark_cancelled(*, run_id: int, token: str) -> bool:
    """running -> cancelled, once its engine is dead."""
    return _end(run_id, token, State.CANCELLED)


def run_interrupt(*, run_id: int, token: str, message: str) -> bool:
    """running -> interrupted: the worker stopped or vanished; the analysis itself did nothing wrong."""
    return _end(run_id, token, State.INTERRUPTED, error_code="interrupted", error_message=message)


def runs_recover(*, device: Device) -> int:
    """Interrupt what a dead worker left running here; returns how many.

    The caller holds the device's lock, so no other worker of this device is alive.
    """
    message = "The worker of this device stopped before the run ended."
    left = Run.objects.running().filter(device=device).values_list("pk", "token")
    return sum(run_interrupt(run_id=run_id, token=token, message=message) for run_id, token in list(left))


def _refuse_what_cannot_run(spec: RunSpec, device: Device) -> None:
    if not device.enabled:
        raise SpecError("device", f"{device} takes no runs: it is disabled")
    if spec.memory_limit_bytes is not None and spec.memory_limit_bytes > device.capacity_bytes:
        limit, capacity = format_bytes(spec.memory_limit_bytes), format_bytes(device.capacity_bytes)
        raise SpecError("memory_limit_bytes", f"{limit} is above what {device} has ({capacity})")
    if spec.precision == "bf16" and device.compute_capability and float(device.compute_capability) < 8:
        capability = device.compute_capability
        raise SpecError("precision", f"bf16 needs compute capability 8.0 or later; {device} has {capability}")
    longest = settings.RUN_TIME_BUDGET_MAX_SECONDS
    if spec.time_budget_seconds > longest:
        raise SpecError("time_budget_seconds", f"this server allows at most {longest:,.0f}")


def _claim(run_id: int, owner: str) -> bool:
    waiting = Run.objects.queued().filter(pk=run_id, cancel_requested=False)
    with transaction.atomic():
        return bool(
            waiting.update(
                state=State.RUNNING,
                attempt=F("attempt") + 1,
                token=uuid4().hex,
                owner=owner[:250],
                phase="",
                started_at=Now(),
                heartbeat_at=Now(),
            )
        )


def _held_attempt(run_id: int, token: str) -> int | None:
    """The attempt this token owns, its row locked until the transaction ends; None when the lease is lost."""
    held = Run.objects.held_by(run_id, token)
    # the UPDATE takes the row's lock on PostgreSQL and moves updated_at, which pollers compare
    return held.values_list("attempt", flat=True).first() if held.update(token=token) else None


def _lines_with_room(lines: Sequence[LogLine], stored: int) -> list[LogLine]:
    room = LOG_LINES_PER_ATTEMPT - stored
    if len(lines) < room:
        return list(lines)
    if room <= 0:
        return []
    last = LogLine("warning", f"The log is full: {LOG_LINES_PER_ATTEMPT:,} lines are kept, later ones are dropped.")
    return [*lines[: room - 1], last]


def _end(run_id: int, token: str, state: State, **columns: Any) -> bool:
    if "error_message" in columns:
        columns["error_message"] = storable_text(columns["error_message"], 10_000)
    held = Run.objects.held_by(run_id, token)
    return bool(held.update(state=state, finished_at=Now(), **columns))
