"""What was measured before an attempt of a run, in the terms of the engine's `--resume`.

The engine itself compares device and environment, and carries the probes over only where they are the same.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Count, F, Q, QuerySet

from analysis.models import Attempt, Run


def earlier_attempt(run: Run) -> dict[str, Any] | None:
    """Of the earlier attempt that got furthest, else of the run that it takes over; None when nothing was measured."""
    best = _furthest(run.attempts.filter(number__lt=run.attempt))
    if best is None and run.takes_over is not None:
        best = _furthest(run.takes_over.attempts.all())
    if best is None or best.environment is None:
        return None
    rows = best.run.measurements.filter(attempt=best.number).order_by("sequence")
    return {**best.environment, "probes": [row.probe.to_dict() for row in rows]}


def _furthest(attempts: QuerySet[Attempt]) -> Attempt | None:
    measured = Count("run__measurements", filter=Q(run__measurements__attempt=F("number")))
    told = attempts.filter(environment__isnull=False).annotate(measured=measured).filter(measured__gt=0)
    return told.select_related("run").order_by("-measured", "-number").first()
