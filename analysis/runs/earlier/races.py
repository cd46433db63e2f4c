"""The race of a measurement's settings: which was run, and the run that starts one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.models import Run, State
from analysis.runs.earlier.reuse import LOOKED_THROUGH_MAX
from analysis.runs.kinds import rules_of
from analysis.runs.queue.create import run_create
from analysis.runs.queue.placement import Placement
from engine.errors import SpecError
from engine.spec import TRAINING_SETTINGS

if TYPE_CHECKING:
    from django.contrib.auth.models import User

_COMPARED = (*TRAINING_SETTINGS, "current_batch_size", "memory_limit_bytes")


def race_start(*, run: Run, requested_by: User) -> Run:
    """Queue a race of the changes that apply to a run's settings, on its device. Raises SpecError."""
    spec = rules_of(run).racing(run)
    if run.device is None:
        raise SpecError("run", "its device is not known here")
    return run_create(spec=spec, place=Placement(device=run.device), requested_by=requested_by, uses_device_price=True)


def newest_race(run: Run) -> Run | None:
    """Find the newest finished race of the run's settings, limit and batch size on its device."""
    if run.device_id is None:
        return None
    finished = Run.objects.racing().filter(state=State.FINISHED, model=run.model, device_id=run.device_id)
    wanted = [run.spec.get(name) for name in _COMPARED]
    newest = finished.order_by("-pk")[:LOOKED_THROUGH_MAX]
    return next((each for each in newest if [each.spec.get(name) for name in _COMPARED] == wanted), None)
