"""Stores the events of a run that another machine executes, as the supervisor stores those of its engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from analysis.models import Measurement, Report, Run, RunLog, State
from analysis.runs import services
from analysis.runs.queue.retry_policy import Cause
from analysis.runs.reported.reports import NotYourReportError, report_device, report_locked, report_revive
from analysis.runs.services import Lease
from analysis.workers.attempt_events import AttemptEvents
from analysis.workers.live_room import LiveRoom
from engine.describe.time_left import TimeLeft
from engine.questions.answers.document import MOST_PROBES


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
    """Store the events that are new, none as a heartbeat; events of a run that is over are counted and dropped.

    Raises NotYourReportError, and EventsMissingError where events before these did not arrive.
    """
    if (report := report_locked(run_key, person)) is None:
        raise NotYourReportError
    run, expected = report.run, report.events_received
    if first > expected:
        raise EventsMissingError(expected)
    fresh = events[expected - first :]
    has_stopped = run.error_code == Cause.STOPPED
    if fresh or not has_stopped:  # after such an end a repeated call is no sign of life
        only_ends = bool(fresh) and all(event["event"] == "error" for event in fresh)
        report_revive(run, is_news=not has_stopped and not only_ends)  # else each call would be another end
    probe_bytes = report.probe_bytes
    if run.state == State.RUNNING:
        probe_bytes = _store(run, fresh, probe_bytes)
    counts = {"events_received": expected + len(fresh), "probe_bytes": probe_bytes}
    Report.objects.filter(pk=report.pk).update(**counts)
    return Received(expected + len(fresh), run.cancel_requested)


def _store(run: Run, events: Sequence[dict[str, Any]], probe_bytes: int) -> int:
    """Continue where the last call ended: what is stored says how far that is. Returns the bytes of all probes."""
    lease, attempt = Lease(run_id=run.pk, token=run.token), run.attempts.get(number=run.attempt)
    probes, bytes_most = [row.probe for row in Measurement.objects.of(run)], int(settings.REPORTED_RESULT_MAX_BYTES)
    intake = AttemptEvents(
        lease,
        facts=attempt.environment,
        probes_stored=len(probes),
        lines_stored=RunLog.objects.of(run).count(),
        time_left=TimeLeft(run.spec, attempt.progress, probes),
    )
    room = LiveRoom(probes=MOST_PROBES - len(probes), probe_bytes=bytes_most - probe_bytes)
    intake.take(room.admitted(events))
    if intake.device is not None and run.device_id is None:  # a run has one: each further row would stay
        report_device(run, intake.device)
    intake.store()
    services.run_heartbeat(**lease, phase=intake.phase or run.phase)
    if intake.error is not None:
        code, message = intake.failure
        status = intake.error.get("exit_status")
        is_status = isinstance(status, int) and 0 <= status < 256
        services.run_fail(**lease, code=code, message=message, exit_status=status if is_status else None)
    return bytes_most - room.probe_bytes
