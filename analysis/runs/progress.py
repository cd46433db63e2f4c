"""What the owner of a running run stores during the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models.functions import Now

from analysis.models import Attempt, Measurement, Run, RunLog
from analysis.models.text import storable_json, storable_text
from analysis.runs.lease import LogLine
from analysis.runs.result_columns import probe_columns
from engine.result import Probe

LOG_LINES_PER_ATTEMPT = 5_000
LOG_MESSAGE_LENGTH = 2_000


def run_heartbeat(*, run_id: int, token: str, phase: str) -> bool:
    """Store the owner's sign of life and the engine's phase."""
    held = Run.objects.held_by(run_id, token)
    return bool(held.update(heartbeat_at=Now(), suspect_at=None, phase=phase[:20]))


def environment_set(*, run_id: int, token: str, environment: Mapping[str, Any]) -> bool:
    """Store the attempt's device and environment, which a later attempt compares, and its estimate."""
    with transaction.atomic():
        attempt = _held_attempt(run_id, token)
        if attempt is not None:
            Attempt.objects.filter(run_id=run_id, number=attempt).update(environment=storable_json(dict(environment)))
    return attempt is not None


def progress_set(*, run_id: int, token: str, progress: Mapping[str, Any]) -> bool:
    """Store what the engine does now. For the live page alone: nothing else reads it, and nothing depends on it.

    `phases` are the seconds at which each phase began; `batch_size` and `step` those of the probe under way; `stage`
    what takes a while before the first probe; `timing_seconds_left` the engine's bound while speeds are compared;
    `cards` and `cards_done` those of an estimate.
    """
    with transaction.atomic():
        attempt = _held_attempt(run_id, token)
        if attempt is not None:
            Attempt.objects.filter(run_id=run_id, number=attempt).update(progress=storable_json(dict(progress)))
    return attempt is not None


def measurement_add(*, run_id: int, token: str, probe: Probe, sequence: int, is_carried: bool = False) -> bool:
    """Store a probe as soon as it is known. Safe to repeat: a probe already stored under this number stays."""
    with transaction.atomic():
        attempt = _held_attempt(run_id, token)
        if attempt is None:
            return False
        place = {"run_id": run_id, "attempt": attempt, "sequence": sequence}
        row = Measurement(**place, is_carried=is_carried, **probe_columns(probe))
        Measurement.objects.bulk_create([row], ignore_conflicts=True)
    return True


def check_storable(probe: Probe) -> None:
    """Raise ValueError for a probe with a figure that its column cannot hold, such as a negative count of steps.

    The same for a batch of no sample, which a column could hold and no chart could place.
    """
    if probe.batch_size < 1:
        raise ValueError(f"batch_size: must be at least 1, got {probe.batch_size}")
    row = Measurement(**probe_columns(probe))
    absent = {name for name, value in probe_columns(probe).items() if value in (None, "", [])}
    try:
        row.clean_fields(exclude={"run", "attempt", "sequence", *absent})
    except ValidationError as exc:
        raise ValueError("; ".join(f"{name}: {' '.join(texts)}" for name, texts in exc.message_dict.items())) from exc


def log_add(*, run_id: int, token: str, lines: Sequence[LogLine], first_sequence: int) -> bool:
    """Store log lines in one transaction; safe to repeat. When the log is full, its last line says so."""
    with transaction.atomic():
        attempt = _held_attempt(run_id, token)
        if attempt is None:
            return False
        rows = [
            RunLog(
                run_id=run_id,
                attempt=attempt,
                sequence=sequence,
                level=line.level,
                message=storable_text(line.message, LOG_MESSAGE_LENGTH),
            )
            for sequence, line in enumerate(_lines_with_room(lines, first_sequence - 1), start=first_sequence)
        ]
        RunLog.objects.bulk_create(rows, ignore_conflicts=True)
    return True


def _held_attempt(run_id: int, token: str) -> int | None:
    """Lock the row of the attempt this token owns until the transaction ends; None when the lease is lost."""
    held = Run.objects.held_by(run_id, token)
    # the UPDATE takes the row's lock on PostgreSQL and moves updated_at, which pollers compare
    return held.values_list("attempt", flat=True).first() if held.update(token=token) else None


def _lines_with_room(lines: Sequence[LogLine], stored: int) -> list[LogLine]:
    room = LOG_LINES_PER_ATTEMPT - stored
    if len(lines) < room:
        return list(lines)
    if room <= 0:
        return []
    last = LogLine("warning", f"The log is full: {LOG_LINES_PER_ATTEMPT:,} lines are stored, later ones are dropped.")
    return [*lines[: room - 1], last]
