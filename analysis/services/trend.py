"""Steps of a trend: somebody says what one is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.audit.record import record
from analysis.comparison.tables import NOTE_LENGTH, TrendAcknowledgement

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from analysis.models import Run


def step_acknowledge(*, run: Run, metric: str, note: str, acknowledged_by: User | None) -> None:
    """Store the note on the step that begins with this run; a later one takes the place of an earlier one."""
    said = {"note": note.strip()[:NOTE_LENGTH], "acknowledged_by": acknowledged_by}
    TrendAcknowledgement.objects.update_or_create(run=run, metric=metric, defaults=said)
    record("run.acknowledge", target=run, after={"metric": metric, "note": said["note"]})
