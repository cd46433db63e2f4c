"""What was measured before an attempt of a run, in the terms of the engine's `--resume`.

The engine itself compares device and environment, and carries the probes over only where they are the same.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Count, F, Q, QuerySet

from analysis.models import Attempt, Run


def earlier_attempt(run: Run) -> dict[str, Any] | None:
    """Return what the engine starts with; None when nothing was measured before.

    A run that takes over another one starts with the other's limit and probes, so that only its speeds are compared
    anew, in every attempt. Any other run starts with the probes of its own attempt that got furthest.
    """
    finished = run.takes_over if run.takes_over is not None and run.takes_over.result else None
    attempts = run.attempts.filter(number__lt=run.attempt) if finished is None else finished.attempts.all()
    best = _furthest(attempts)
    if best is None or best.environment is None:
        return None
    rows = best.run.measurements.filter(attempt=best.number).order_by("sequence")
    boundary = None if finished is None or finished.result is None else finished.result["boundary"]
    return {**best.environment, "probes": [row.probe.to_dict() for row in rows], "boundary": boundary}


def _furthest(attempts: QuerySet[Attempt]) -> Attempt | None:
    measured = Count("run__measurements", filter=Q(run__measurements__attempt=F("number")))
    measuring = attempts.filter(environment__isnull=False).annotate(measured=measured).filter(measured__gt=0)
    return measuring.select_related("run").order_by("-measured", "-number").first()
