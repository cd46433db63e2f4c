"""Does a batch size fit? What was measured already says so, or a run that tries this one size is to be waited for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import User

from analysis.models import Device, Run, State
from analysis.runs.earlier.reuse import NOT_MEASURED, equal_runs, part_without, stored_spec
from engine.facts.result import Reason
from engine.settings.spec import RunSpec

MEASURED, DERIVED = "measured", "derived"
# how a limit is searched, and what is compared when it is found, changes nothing of whether one size trains
_NOT_OF_ONE_SIZE = {
    *NOT_MEASURED,
    *("check_batch_size", "current_batch_size", "max_batch_size", "start_batch_size", "soak_steps"),
    *("reserve_fraction", "reserve_bytes", "compare_speed"),
}
_REFUSALS = (Reason.OUT_OF_MEMORY, Reason.DOES_NOT_FIT)


@dataclass(frozen=True, slots=True)
class FitAnswer:
    """What a run says of a batch size. `basis` is derived where a larger size trained, or a smaller one did not."""

    run: Run
    fits: bool
    basis: str


def fit_known(spec: RunSpec, devices: Iterable[Device]) -> FitAnswer | None:
    """Answer from the newest run of equal settings, on such a device, with the software it has now; None: unknown."""
    if (size := spec.check_batch_size) is None:
        return None
    equal = equal_runs(spec, devices, _NOT_OF_ONE_SIZE)
    return next((answer for run, _ in equal if (answer := fit_of(run, size)) is not None), None)


def fit_of(run: Run, batch_size: int) -> FitAnswer | None:
    """Read what a finished run proves of this size; None where it proves nothing."""
    largest, checked = run.largest_batch_size, run.spec.get("check_batch_size")
    if largest and batch_size <= largest and run.boundary_reason != Reason.TIME_BUDGET:  # there it was not soaked
        return FitAnswer(run, True, MEASURED if batch_size == largest else DERIVED)
    refused = None
    if run.certified and run.boundary_reason in _REFUSALS:
        refused = (largest or 0) + 1
    elif checked and largest is None and run.boundary_reason in (Reason.ONE_SIZE, Reason.SIZE_LIMIT):
        refused = checked
    if refused is None or batch_size < refused:
        return None
    return FitAnswer(run, False, MEASURED if batch_size == refused else DERIVED)


def fit_under_way(spec: RunSpec, user: User) -> Run | None:
    """Find this person's unfinished run of the same request: a repeated request waits for it."""
    going_on = Run.objects.measuring().filter(
        state__in=(State.QUEUED, State.RUNNING), requested_by=user, model=spec.model, cancel_requested=False
    )
    for run in going_on.with_places().order_by("pk"):
        stored = stored_spec(run)
        if stored is None or stored.check_batch_size != spec.check_batch_size:
            continue
        is_equal = part_without(stored, _NOT_OF_ONE_SIZE) == part_without(spec, _NOT_OF_ONE_SIZE)
        requested = run.requested_device.device if run.requested_device else run.requested_kind
        if is_equal and spec.device in ("auto", requested):
            return run
    return None
