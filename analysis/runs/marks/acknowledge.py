"""Notes on the steps of a trend."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from analysis.audit.record import record
from analysis.models import Run, TrendAcknowledgement
from analysis.models.text import plain_text
from analysis.models.trend import NOTE_LENGTH
from analysis.permissions import may_manage


def step_acknowledge(*, run: Run, metric: str, note: str, acknowledged_by: User) -> bool:
    """Store a note on the step at this run; False: another person's stands. Raises ValidationError if unprintable."""
    plain_text(note)
    with transaction.atomic():
        list(Run.all_runs.select_for_update().filter(pk=run.pk).values_list("pk"))  # one writer at a time
        earlier = TrendAcknowledgement.objects.select_related("acknowledged_by").filter(run=run, metric=metric).first()
        if earlier is not None and earlier.acknowledged_by_id != acknowledged_by.pk and not may_manage(acknowledged_by):
            return False
        columns = {"note": note.strip()[:NOTE_LENGTH], "acknowledged_by": acknowledged_by}
        TrendAcknowledgement.objects.update_or_create(run=run, metric=metric, defaults=columns)
        record(
            "run.acknowledge",
            target=run,
            before={"note": earlier.note, "acknowledged_by": str(earlier.acknowledged_by or "")} if earlier else None,
            after={"metric": metric, "note": columns["note"]},
        )
    return True
