"""Requests of estimates."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.contrib.auth.models import AnonymousUser, User

from analysis.api.kinds.members import Queued
from analysis.api.kinds.requests import Requests, requested
from analysis.models import Run
from analysis.presentation.unreadable import read_stored
from engine.estimate.spec import EstimateSpec
from engine.estimate.types import Estimate as EstimateOfCard
from engine.facts.result import Outcome
from engine.questions.documents.estimated import Estimated
from engine.settings.rank_settings import OF_STARTS
from engine.settings.spec import RunSpec

NOT_OF_ESTIMATES = ("device", "device_class", "accepts_shared_device", "check_batch_size", "time_budget_seconds")


class Estimate(Requests):
    """A body has the keys of a RunSpec without those about a device, and those of an EstimateSpec."""

    takes, without = (RunSpec, EstimateSpec, Queued), NOT_OF_ESTIMATES
    refused = dict.fromkeys(
        (*NOT_OF_ESTIMATES, *OF_STARTS), "an estimate uses no device; leave it out, or request kind measurement"
    )
    spec_name = EstimateSpec.__name__
    result_type, result_name = EstimateOfCard, "Estimates"
    evidence = "estimated"

    def submission(self, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
        spec = {name: value for name, value in values.items() if name != "priority"}
        return {"spec": EstimateSpec.from_dict(spec), **requested(Queued.of(values), user)}

    def body_of(self, run: Run) -> dict[str, Any]:
        return {name: value for name, value in super().body_of(run).items() if name not in NOT_OF_ESTIMATES}

    def curves(self, run: Run) -> list[dict[str, Any]]:
        return [
            {
                "gpu": estimate.gpu.name,
                "capacity_bytes": estimate.gpu.total_bytes,
                "limit_bytes": estimate.capacity_bytes,
                "points": [
                    {**asdict(point), "outcome": Outcome.FITS if point.fits else Outcome.OUT_OF_MEMORY}
                    for point in estimate.points
                ],
            }
            for estimate in (read_stored(Estimated.from_dict, run.result).estimates if run.result else ())
        ]
