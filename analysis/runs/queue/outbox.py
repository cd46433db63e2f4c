"""The outbox: a run's end is stored in the transaction that ends it, and no killed process can lose the news."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import CharField, Value
from django.db.models.functions import Cast, Concat

from analysis.models import NewsEvent, NewsKind, State


def note_ends(run_ids: Iterable[int], state: State) -> None:
    """Store that these runs ended in this state. Call it inside the transaction that ends them; safe to repeat."""
    kind = NewsKind(f"run.{state}")
    events = [NewsEvent(kind=kind, key=f"run:{run_id}:{state}", run_id=run_id) for run_id in run_ids]
    NewsEvent.objects.bulk_create(events, ignore_conflicts=True, batch_size=500)


def note_goes_on(run_id: int) -> None:
    """Store that an interrupted run goes on: should it be interrupted once more, that is news again."""
    stored = NewsEvent.objects.filter(key=f"run:{run_id}:{State.INTERRUPTED}")
    stored.update(key=Concat("key", Value(":"), Cast("id", CharField())))
