"""The race of a measurement's settings: which was run, and the run that starts one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.models import Run, RunKind, State
from analysis.runs.earlier.reuse import LOOKED_THROUGH_MAX
from analysis.runs.queue.create import run_create
from analysis.runs.queue.placement import Placement
from engine.errors import SpecError
from engine.faster.spec import SETTINGS, FasterSpec
from engine.spec import TRAINING_SETTINGS, RunSpec

if TYPE_CHECKING:
    from django.contrib.auth.models import User

_COMPARED = (*TRAINING_SETTINGS, "current_batch_size", "memory_limit_bytes")


def race_start(*, run: Run, requested_by: User) -> Run:
    """Queue a race of the changes that apply to a measurement's settings, on its device. Raises SpecError."""
    if run.kind != RunKind.MEASUREMENT or run.device is None:
        raise SpecError("run", "only the settings of a model's measurement on a device race")
    place = Placement(device=run.device)
    return run_create(spec=race_of(run.run_spec), place=place, requested_by=requested_by, uses_device_price=True)


def race_of(spec: RunSpec) -> FasterSpec:
    """Return the race of a training's settings, with all changes that apply. Raises SpecError."""
    return FasterSpec(**{name: getattr(spec, name) for name in SETTINGS if name != "tried"})


def newest_race(run: Run) -> Run | None:
    """Find the newest finished race of the run's settings, limit and batch size on its device."""
    finished = Run.objects.filter(kind=RunKind.RACE, state=State.FINISHED, model=run.model, device=run.device)
    wanted = [run.spec.get(name) for name in _COMPARED]
    newest = finished.order_by("-pk")[:LOOKED_THROUGH_MAX]
    return next((each for each in newest if [each.spec.get(name) for name in _COMPARED] == wanted), None)
