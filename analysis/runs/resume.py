"""What an earlier attempt of a run measured, in the words of the engine's `--known`.

The engine itself compares device and environment, and carries the probes over only where they are the same.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Count, F, Q

from analysis.models import Run


def known(run: Run) -> dict[str, Any] | None:
    """Of the earlier attempt that got furthest; None when none measured anything."""
    measured = Count("run__measurements", filter=Q(run__measurements__attempt=F("number")))
    earlier = run.attempts.filter(number__lt=run.attempt, environment__isnull=False)
    best = earlier.annotate(measured=measured).filter(measured__gt=0).order_by("-measured", "-number").first()
    if best is None or best.environment is None:
        return None
    rows = run.measurements.filter(attempt=best.number).order_by("sequence")
    return {**best.environment, "probes": [row.probe.to_dict() for row in rows]}
