"""What the owner of a running run stores during the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from django.db import transaction
from django.db.models.functions import Now

from analysis.models import Attempt, Measurement, Run, RunLog
from analysis.models.text import storable_json, storable_text
from analysis.runs.columns.result_columns import check_columns, probe_columns
from engine.facts.result import Probe

LOG_LINES_PER_ATTEMPT = 5_000
LOG_MESSAGE_LENGTH = 2_000


class Lease(TypedDict):
    """The run and the token that prove ownership in every write to a running run."""

    run_id: int
    token: str


@dataclass(frozen=True, slots=True)
class LogLine:
    level: str
    message: str


def run_heartbeat(*, run_id: int, token: str, phase: str) -> bool:
    held = Run.objects.held_by(run_id, token)
    return bool(held.update(heartbeat_at=Now(), suspect_at=None, phase=phase[:20]))


def attempt_set(*, run_id: int, token: str, **facts: Mapping[str, Any]) -> bool:
    """Store the attempt's `environment` or its `progress`.

    The environment, with device and estimate, is what a later attempt compares. The progress is for the live page
    alone: what `engine.describe.time_left` keeps of the events, with the time left (`left`:
    seconds, and the second of the run at which they held), and `ends_at`, that as a moment of the worker's clock.
    """
    with transaction.atomic():
        attempt = _held_attempt(run_id, token)
        if attempt is not None:
            columns = {name: storable_json(dict(value)) for name, value in facts.items()}
            Attempt.objects.filter(run_id=run_id, number=attempt).update(**columns)
    return attempt is not None


@dataclass(frozen=True, slots=True)
class Measured:
    sequence: int
    probe: Probe
    is_carried: bool = False


def measurements_add(*, run_id: int, token: str, measured: Sequence[Measured]) -> bool:
    """Store probes, together. Safe to repeat: a probe already stored under its number stays."""
    with transaction.atomic():
        attempt = _held_attempt(run_id, token)
        if attempt is None:
            return False
        place = {"run_id": run_id, "attempt": attempt}
        rows = [
            Measurement(**place, sequence=each.sequence, is_carried=each.is_carried, **probe_columns(each.probe))
            for each in measured
        ]
        Measurement.objects.bulk_create(rows, ignore_conflicts=True)
    return True


def measurement_add(*, run_id: int, token: str, probe: Probe, sequence: int, is_carried: bool = False) -> bool:
    return measurements_add(run_id=run_id, token=token, measured=[Measured(sequence, probe, is_carried)])


def check_storable(probe: Probe) -> None:
    """Raise ValueError for a figure beyond its column, and for a batch of no sample, which no chart could place."""
    if probe.batch_size < 1:
        raise ValueError(f"batch_size: must be at least 1, got {probe.batch_size}")
    check_columns(Measurement, probe_columns(probe))


def log_add(*, run_id: int, token: str, lines: Sequence[LogLine], first_sequence: int) -> bool:
    """Store log lines in one transaction; safe to repeat. When the log is full, its last line says so."""
    with transaction.atomic():
        attempt = _held_attempt(run_id, token)
        if attempt is None:
            return False
        room = LOG_LINES_PER_ATTEMPT - (first_sequence - 1)
        if len(lines) >= room:
            text = f"The log is full: {LOG_LINES_PER_ATTEMPT:,} lines are stored, later ones are dropped."
            lines = [*lines[: room - 1], LogLine("warning", text)] if room > 0 else []
        rows = [
            RunLog(
                run_id=run_id,
                attempt=attempt,
                sequence=sequence,
                level=line.level,
                message=storable_text(line.message, LOG_MESSAGE_LENGTH),
            )
            for sequence, line in enumerate(lines, start=first_sequence)
        ]
        RunLog.objects.bulk_create(rows, ignore_conflicts=True)
    return True


def _held_attempt(run_id: int, token: str) -> int | None:
    """Lock the row of the attempt this token owns until the transaction ends; None when the lease is lost."""
    held = Run.objects.held_by(run_id, token)
    # the UPDATE takes the row's lock on PostgreSQL and moves updated_at, which pollers compare
    return held.values_list("attempt", flat=True).first() if held.update(token=token) else None
