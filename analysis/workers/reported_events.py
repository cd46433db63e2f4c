"""Stores the events of a run that another machine executes, as the supervisor stores those of its engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction

from analysis.models import Measurement, Report, Run, RunLog, State
from analysis.runs import services
from analysis.runs.reports import report_device, report_locked, report_revive
from analysis.runs.retry_policy import Cause
from analysis.runs.services import Lease
from analysis.workers.event_buffer import EventBuffer
from analysis.workers.event_intake import EventIntake

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@dataclass(frozen=True, slots=True)
class Received:
    """The number of the event that is expected next, and whether the run was cancelled here meanwhile."""

    next: int
    cancel_requested: bool


class EventsMissingError(Exception):
    """The events begin after the one that is expected next."""

    def __init__(self, expected: int) -> None:
        super().__init__(f"event {expected} is expected next")
        self.expected = expected


@transaction.atomic
def events_store(*, run_key: str, person: User, first: int, events: Sequence[dict[str, Any]]) -> Received:
    """Store the events that are new; none is a heartbeat. Those of a run that is over are counted and dropped.

    Raises NotYourReportError, and EventsMissingError where events before these did not arrive.
    """
    report = report_locked(run_key, person)
    run, expected = report.run, report.events_received
    if first > expected:
        raise EventsMissingError(expected)
    fresh = events[expected - first :]
    if fresh or run.error_code != Cause.STOPPED:  # behind such an end a call that is repeated is no sign of life
        report_revive(run)
    if run.state == State.RUNNING:
        _store(run, fresh)
    Report.objects.filter(pk=report.pk).update(events_received=expected + len(fresh))
    return Received(expected + len(fresh), run.cancel_requested)


def _store(run: Run, events: Sequence[dict[str, Any]]) -> None:
    """Continue where the last call ended: what is stored says how far that is."""
    lease, attempt = Lease(run_id=run.pk, token=run.token), run.attempts.get(number=run.attempt)
    buffer = EventBuffer(
        lease,
        facts=attempt.environment,
        probes_stored=Measurement.objects.of(run).count(),
        lines_stored=RunLog.objects.of(run).count(),
    )
    intake = EventIntake(buffer, progress=attempt.progress)
    for event in events:
        intake.take(event)
    if intake.device is not None:
        report_device(run, intake.device)
    buffer.store()
    services.run_heartbeat(**lease, phase=intake.phase or run.phase)
    if intake.error is not None:
        code, message = intake.failure
        services.run_fail(**lease, code=code, message=message, exit_status=_exit_status(intake.error))


def _exit_status(error: dict[str, Any]) -> int | None:
    status = error.get("exit_status")
    return status if isinstance(status, int) and 0 <= status < 256 else None
