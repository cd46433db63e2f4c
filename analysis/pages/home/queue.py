"""The queue on the home page: counts per device, and the positions of the person's own runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.models import Run
from analysis.pages.fleet.context import QueuedRun, waiting_runs
from analysis.runs.queue.forecast import queue_positions

OWN_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Queue:
    """`own` are this person's first waiting runs, with their positions where those are worked out."""

    waiting_count: int
    waiting_by_device: Mapping[int, int]
    own: tuple[QueuedRun, ...]


def queue_of(user: Any) -> Queue:
    """Read the queue: one statement while it is empty; otherwise also the person's own runs and their forecast."""
    waiting = Run.objects.on_devices().queued().filter(cancel_requested=False)
    # counted in Python: to group by device, SQLite would read its index entries of every run that requested one
    counts = Counter(waiting.order_by().values_list("requested_device", flat=True))
    total = counts.total()
    by_device = {device_id: count for device_id, count in counts.items() if device_id is not None}
    if not total:
        return Queue(total, by_device, ())
    own = waiting.filter(requested_by=user).with_places().defer("result", "memory_curve")
    first = list(own.order_by("-priority", "created_at", "id")[:OWN_SHOWN])
    return Queue(total, by_device, tuple(waiting_runs(first, queue_positions(first))))
