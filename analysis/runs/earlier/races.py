"""The races of a measurement's settings and of a script: which was run, and the run that starts one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q

from analysis.models import Run, State
from analysis.models.querysets import RunQuerySet
from analysis.runs.earlier.reuse import LOOKED_THROUGH_MAX
from analysis.runs.kinds import rules_of
from analysis.runs.queue.create import run_create
from analysis.runs.queue.placement import Placement
from engine.errors import SpecError
from engine.spec import TRAINING_SETTINGS

if TYPE_CHECKING:
    from django.contrib.auth.models import User

_COMPARED = (*TRAINING_SETTINGS, "current_batch_size", "memory_limit_bytes")
_COMPARED_OF_SCRIPTS = ("command", "directory")
"""Their batch size is compared as a column: the spec of a race at the script's own size does not know it."""


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


def newest_race(run: Run) -> Run | None:
    return _newest(Run.objects.racing(), run, _COMPARED)


def newest_race_of_script(run: Run) -> Run | None:
    """Find the newest finished race of the run's command at its batch size of today, on its device."""
    races = Run.objects.racing_scripts().filter(current_batch_size=run.current_batch_size)
    return _newest(races, run, _COMPARED_OF_SCRIPTS)


def _newest(races: RunQuerySet, run: Run, compared: tuple[str, ...]) -> Run | None:
    """Return the newest that has the same, of all changes rather than of some that were named.

    One that a stranger reported answers nobody else's run.
    """
    if run.device_id is None:
        return None
    own = Q() if run.requested_by_id is None else Q(requested_by=run.requested_by_id)
    races = races.filter(Q(is_trusted=True) | own)
    finished = races.filter(state=State.FINISHED, model=run.model, device_id=run.device_id)
    wanted = [run.spec.get(name) for name in compared]
    newest = finished.defer("result", "memory_curve").order_by("-pk")[:LOOKED_THROUGH_MAX]
    same = [each for each in newest if [each.spec.get(name) for name in compared] == wanted]
    return next((each for each in same if not each.spec.get("tried")), next(iter(same), None))
