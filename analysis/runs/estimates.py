"""Estimates: runs that need no device; and the calibration of cards, which makes estimates more accurate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from analysis.accounts.quotas import enforce_quota
from analysis.audit.record import record
from analysis.models import ALL_GPUS, CPU, Device, Run
from analysis.runs.create import describe_request, estimator_wake, refuse_excessive_request
from analysis.runs.run_settings import run_settings_keep
from analysis.runs.run_text import run_text_keep
from engine.errors import SpecError
from engine.estimate.calibration import Calibration
from engine.estimate.frontier import MAX_LENGTHS, specs_of
from engine.estimate.gpus import find
from engine.estimate.predict import check
from engine.estimate.what_to_change import Scope
from engine.spec import RunSpec

if TYPE_CHECKING:
    from django.contrib.auth.models import User

TIME_BUDGET_SECONDS = 300.0
"""Twenty times what an estimate of the whole catalogue should take: one that takes longer is stuck."""
CHANGES_SECONDS = 1800.0
"""For an estimate with other settings or sizes, each of which takes as long as one estimate."""


def estimate_create(
    *,
    spec: RunSpec,
    gpu: str,
    requested_by: User | None = None,
    priority: int = Run.Priority.NORMAL,
    what_to_change: str = "",
    frontier: Sequence[int] = (),
) -> Run:
    """Store a queued estimate for a card of the catalogue, for `all` or for `cpu`, and wake a worker.

    `what_to_change` is a `Scope`: the settings with which today's batch size would fit one card are estimated too.
    `frontier` are lengths, or image sizes: the largest batch at each on one card is estimated too.
    Raises SpecError for a card that is not in the catalogue, with the nearest names, and for what the card cannot do.
    """
    _refuse_wrong_scope(what_to_change, gpu)
    _refuse_wrong_sizes(spec, frontier, gpu)
    if gpu != ALL_GPUS:
        check(spec, None if gpu == CPU else find(gpu))
    longest = min(CHANGES_SECONDS, settings.RUN_TIME_BUDGET_MAX_SECONDS)
    seconds = longest if what_to_change or frontier else TIME_BUDGET_SECONDS
    device = CPU if gpu == CPU else "cuda"
    run = Run(
        kind=Run.Kind.ESTIMATE,
        gpu=gpu,
        what_to_change=what_to_change,
        frontier=sorted(frontier),
        model=spec.model,
        requested_by=requested_by,
        spec=replace(spec, device=device, time_budget_seconds=seconds).to_dict(),
        precision=spec.precision,
        optimizer=spec.optimizer,
        current_batch_size=spec.current_batch_size,
        priority=priority,
    )
    refuse_excessive_request(run)
    with transaction.atomic():
        enforce_quota(run)
        run.save(force_insert=True)
        run_text_keep(run_id=run.pk)
        run_settings_keep(run=run)
        record("run.create", target=run, after=describe_request(run))
        estimator_wake()
    return run


def _refuse_wrong_scope(scope: str, gpu: str) -> None:
    if scope and scope not in list(Scope):
        raise SpecError("what_to_change", f"must be one of {', '.join(Scope)}")
    if scope and gpu == ALL_GPUS:
        raise SpecError("what_to_change", "is for one card: name it in gpu")


def _refuse_wrong_sizes(spec: RunSpec, sizes: Sequence[int], gpu: str) -> None:
    if not sizes:
        return
    if gpu == ALL_GPUS:
        raise SpecError("frontier", "is for one card: name it in gpu")
    if len(set(sizes)) != len(sizes):
        raise SpecError("frontier", f"give each size once: 2 to {MAX_LENGTHS} different ones, such as 128,256,512")
    specs_of(spec, sizes)


def calibration_set(*, device: Device, calibration: Calibration) -> None:
    """Store a card's own constants: estimates for cards of its class use them from now on."""
    Device.objects.filter(pk=device.pk).update(calibration=calibration.to_dict(), calibrated_at=Now())
