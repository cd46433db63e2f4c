"""The probes measured before an attempt, for the engine's `--resume`, which checks device and environment."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db.models import Count, F, Q

from analysis.models import Run
from engine.questions.documents.measured import Measured


def earlier_attempt(run: Run) -> dict[str, Any] | None:
    """Return what the engine starts with; None when nothing was measured before.

    A run that takes over another one starts with the other's limit and probes: only its speeds are compared again, in
    every attempt. Any other run starts with the probes of its own attempt that has the most.
    """
    finished = run.takes_over if run.takes_over is not None and run.takes_over.result else None
    attempts = run.attempts.filter(number__lt=run.attempt) if finished is None else finished.attempts.all()
    probe_count = Count("run__measurements", filter=Q(run__measurements__attempt=F("number")))
    usable = attempts.filter(environment__isnull=False).annotate(probe_count=probe_count).filter(probe_count__gt=0)
    best = usable.select_related("run").order_by("-probe_count", "-number").first()
    if best is None or best.environment is None:
        return None
    rows = best.run.measurements.filter(attempt=best.number).order_by("sequence")
    boundary = None if finished is None else asdict(Measured.from_dict(finished.result or {}).boundary)
    return {**best.environment, "probes": [row.probe.to_dict() for row in rows], "boundary": boundary}
