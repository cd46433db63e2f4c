"""Races of a measurement's settings and of scripts: finds the race of a run, and starts a race."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db.models import Q

from analysis.models import Run, State
from analysis.runs.earlier.reuse import LOOKED_THROUGH_MAX
from analysis.runs.kinds import rules_of
from analysis.runs.queue.create import run_create
from analysis.runs.queue.placement import Placement
from engine.errors import SpecError
from engine.settings.spec import TRAINING_SETTINGS

OF_SETTINGS = (*TRAINING_SETTINGS, "memory_limit_bytes")
OF_SCRIPTS = ("command", "directory")
"""The members of a spec by which a race is of the same training; batch sizes are compared as columns."""


def race_start(*, run: Run, requested_by: User) -> Run:
    """Queue a race of the changes that apply to a run's settings, on its device. Raises SpecError."""
    spec = rules_of(run).racing(run)
    if run.device is None:
        raise SpecError("run", "its device is not known here")
    return run_create(
        spec=spec,
        place=Placement(device=run.device),
        requested_by=requested_by,
        accepts_shared_device=run.accepts_shared_device,
        uses_device_price=run.uses_device_price,
    )


def newest_race(run: Run, compared: tuple[str, ...]) -> Run | None:
    """Find the newest finished race of what a run trains, at today's batch size and on its device.

    A race of all changes comes before one of named ones; a stranger's report answers nobody else's run.
    """
    if run.device_id is None:
        return None
    own = Q() if run.requested_by_id is None else Q(requested_by=run.requested_by_id)
    races = Run.objects.racing(run.kind).filter(Q(is_trusted=True) | own, state=State.FINISHED, model=run.model)
    finished = races.filter(device_id=run.device_id, current_batch_size=run.current_batch_size)
    wanted = [run.spec.get(name) for name in compared]
    newest = finished.defer("result", "memory_curve").order_by("-pk")[:LOOKED_THROUGH_MAX]
    same = [each for each in newest if [each.spec.get(name) for name in compared] == wanted]
    return next((each for each in same if not each.spec.get("tried")), next(iter(same), None))
