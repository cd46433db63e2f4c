"""Estimates: runs that need no device; and the calibration of cards, which makes estimates more accurate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models.functions import Now

from analysis.accounts.quotas import enforce_quota
from analysis.audit.record import record
from analysis.models import ALL_GPUS, Device, Run
from analysis.runs.create import describe_request, estimator_wake, refuse_excessive_request
from analysis.runs.run_settings import run_settings_keep
from analysis.runs.run_text import run_text_keep
from engine.estimate.calibration import Calibration
from engine.estimate.gpus import find
from engine.estimate.predict import check
from engine.spec import RunSpec

if TYPE_CHECKING:
    from django.contrib.auth.models import User

TIME_BUDGET_SECONDS = 300.0
"""Twenty times what an estimate of the whole catalogue should take: one that takes longer is stuck."""


def estimate_create(
    *, spec: RunSpec, gpu: str, requested_by: User | None = None, priority: int = Run.Priority.NORMAL
) -> Run:
    """Store a queued estimate for a card of the catalogue, or for `all`, and wake a worker.

    Raises SpecError for a card that is not in the catalogue, with the nearest names, and for what the card cannot do.
    """
    if gpu != ALL_GPUS:
        check(spec, find(gpu))
    run = Run(
        kind=Run.Kind.ESTIMATE,
        gpu=gpu,
        model=spec.model,
        requested_by=requested_by,
        spec=replace(spec, device="cuda", time_budget_seconds=TIME_BUDGET_SECONDS).to_dict(),
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


def calibration_set(*, device: Device, calibration: Calibration) -> None:
    """Store a card's own constants: estimates for cards of its class use them from now on."""
    Device.objects.filter(pk=device.pk).update(calibration=calibration.to_dict(), calibrated_at=Now())
