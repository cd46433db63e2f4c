"""The end of an attempt: with a result, without one, or with the run back in the queue for another attempt."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from analysis.models import Attempt, Device, Run, State
from analysis.models.text import storable_json, storable_text
from analysis.runs.columns.result_columns import printed_columns
from analysis.runs.columns.run_text import run_text_keep
from analysis.runs.kinds import rules_of
from analysis.runs.matrix_store import cells_store
from analysis.runs.queue.create import wake_for
from analysis.runs.queue.outbox import note_ends
from analysis.runs.queue.retry_policy import Cause, decide_retry, describe_attempts
from engine.questions.documents.measured import without_secrets
from engine.questions.kinds import KINDS, Document

_MESSAGE_LENGTH = 10_000


def run_finish(*, run_id: int, token: str, result: Mapping[str, Any], exit_status: int = 0) -> bool:
    """Move running -> finished, and copy the figures that lists sort on from the result into columns."""
    # without unprintable characters, which a driver's name of a device may contain
    result = {name: storable_json(part) for name, part in result.items()}
    with transaction.atomic():
        run = _lock_held_run(run_id, token)
        if run is None:
            return False
        found = KINDS[run.kind].read(result)
        finish_locked(run, found, result, rules_of(run).columns(found), exit_status)
        return True


def finish_locked(
    run: Run,
    found: Document,
    result: Mapping[str, Any],
    columns: Mapping[str, Any],
    exit_status: int,
    **attempt_columns: Any,
) -> None:
    """Store what a run found, with all rows derived from the result; the caller has locked the run's row."""
    result = without_secrets(result)  # once more: the engine of a sender may know fewer
    columns = {**columns, **printed_columns(found), "result": dict(result)}
    if (number := found.spec.get("config_parameters")) is not None:
        # only the engine can count the parameters of a config: lists show them
        columns["spec"] = {**run.spec, "config_parameters": number}
    _end_run(run, State.FINISHED, exit_status, columns, attempt_columns)
    run_text_keep(run_id=run.pk)  # the result names the card
    cells_store(run=run, found=found)


def run_fail(*, run_id: int, token: str, code: str, message: str, exit_status: int | None = None) -> bool:
    """End an attempt that gave no result. `analysis.runs.queue.retry_policy` decides the run's next state."""
    message = storable_text(message, _MESSAGE_LENGTH)
    with transaction.atomic():
        run = _lock_held_run(run_id, token)
        if run is None:
            return False
        earlier = list(run.attempts.filter(number__lt=run.attempt, counted=True).values_list("cause", flat=True))
        how = {"cancel_requested": run.cancel_requested, "is_reported": run.is_reported}
        decision = decide_retry(code, earlier, **how)
        attempt_columns = {"cause": code[:40], "message": message, "counted": decision.counted}
        if decision.state == State.QUEUED:
            _requeue(run, exit_status, attempt_columns)
            return True
        if decision.gives_up:
            message = f"{describe_attempts([*earlier, code])} Last: {message}"
        is_cancelled = decision.state == State.CANCELLED
        run_columns = {} if is_cancelled else {"error_code": code[:40], "error_message": message}
        _end_run(run, decision.state, exit_status, run_columns, attempt_columns)
        return True


def run_mark_cancelled(*, run_id: int, token: str, message: str = "") -> bool:
    """Move running -> cancelled, once its engine is dead."""
    with transaction.atomic():
        run = _lock_held_run(run_id, token)
        if run is None:
            return False
        _end_run(run, State.CANCELLED, None, {"error_message": message}, {"message": message})
        return True


def run_wants_cancel(*, run_id: int) -> bool:
    return Run.objects.filter(pk=run_id, cancel_requested=True).exists()


def runs_reap() -> int:
    """Take runs from owners that gave no sign of life; returns how many were taken.

    A first pass only makes them suspect, by the database's clock: so an outage of the database takes none.
    """
    silent = Run.objects.running().filter(heartbeat_at__lt=_ago(settings.RUN_LEASE_SECONDS))
    lost = silent.filter(suspect_at__lt=_ago(settings.RUN_SUSPECT_SECONDS)).values_list("pk", "token", "owner")
    taken = [
        run_fail(run_id=run_id, token=token, code=Cause.HOST_LOST, message=f"No sign of life from {owner}.")
        for run_id, token, owner in list(lost)
    ]
    silent.filter(suspect_at=None).update(suspect_at=Now())
    return sum(taken)


def _ago(seconds: float) -> Any:
    return Now() - timedelta(seconds=seconds)


def _lock_held_run(run_id: int, token: str) -> Run | None:
    """Lock the running run until the transaction ends; None when the lease is lost."""
    held = Run.objects.held_by(run_id, token)
    return held.defer("result").first() if held.update(token=token) else None


def _end_run(
    run: Run,
    state: State,
    exit_status: int | None,
    run_columns: Mapping[str, Any],
    attempt_columns: Mapping[str, Any],
) -> None:
    ended = {"state": state, "finished_at": Now(), "suspect_at": None, "exit_status": exit_status}
    Run.objects.filter(pk=run.pk).update(**ended, **run_columns)
    _release(run)
    _end_attempt(run, state, exit_status, attempt_columns)
    note_ends([run.pk], state)


def _requeue(run: Run, exit_status: int | None, attempt_columns: Mapping[str, Any]) -> None:
    """Move running -> queued: the next claim is another attempt, with another token."""
    waiting = {"state": State.QUEUED, "token": "", "owner": "", "phase": "", "heartbeat_at": None, "suspect_at": None}
    if run.needs_device:
        waiting["device_name"] = ""
    Run.objects.filter(pk=run.pk).update(**waiting)
    _release(run)
    wake_for(run=run)
    _end_attempt(run, State.INTERRUPTED, exit_status, attempt_columns)


def _release(run: Run) -> None:
    """Give back the devices that the run held together; a single device is free once the run's state changes."""
    if run.device_count > 1:
        Device.objects.filter(held_for=run).update(held_for=None)


def _end_attempt(run: Run, outcome: State, exit_status: int | None, columns: Mapping[str, Any]) -> None:
    attempt = Attempt.objects.filter(run_id=run.pk, number=run.attempt)
    attempt.update(ended_at=Now(), outcome=outcome, exit_status=exit_status, **columns)
