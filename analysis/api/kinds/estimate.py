"""Requests of estimates."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser, User

from analysis.api.kinds.requests import FIGURES, Components, Requests, component, requested
from analysis.api.kinds.setting_schema import properties_of
from analysis.models import ALL_GPUS, CPU, Run
from analysis.presentation.unreadable import read_stored
from engine.documents.estimated import Estimated
from engine.estimate.frontier import MAX_LENGTHS
from engine.estimate.gpus import gpus
from engine.estimate.spec import EstimateSpec
from engine.estimate.types import Estimate as EstimateOfCard
from engine.estimate.what_to_change import Scope
from engine.results.result import Outcome
from engine.settings.rank_settings import OF_STARTS

NOT_OF_ESTIMATES = ("device", "device_class", "accepts_shared_device", "check_batch_size", "time_budget_seconds")


class Estimate(Requests):
    """A body has the keys of a RunSpec without those about a device, and those of an EstimateSpec."""

    views = "analysis.api.v1.run.estimates"
    evidence = "estimated"
    spec_name = EstimateSpec.__name__
    result_type, result_name = EstimateOfCard, "Estimates"
    refused = dict.fromkeys(
        (*NOT_OF_ESTIMATES, *OF_STARTS), "an estimate uses no device; leave it out, or request kind measurement"
    )
    only_others = (*NOT_OF_ESTIMATES, *OF_STARTS, "tried")

    def own_properties(self) -> dict[str, Any]:
        properties = properties_of(EstimateSpec)
        properties["gpu"]["enum"] = [ALL_GPUS, CPU, *gpus()]
        properties["what_to_change"]["enum"] = ["", *Scope]
        sizes = {"type": "integer", "minimum": 1}
        properties["frontier"] |= {"items": sizes, "uniqueItems": True, "maxItems": MAX_LENGTHS}
        return properties

    def described_result(self) -> Components:
        whole = {
            "title": "Estimates",
            "type": "object",
            "description": "The result of an estimate: an estimate for each GPU.",
            "required": ["estimates"],
            "properties": {
                "estimates": {"type": "array", "items": component(self.result_type.__name__)},
                "smallest_gpu": {
                    "type": ["string", "null"],
                    "description": "Of several GPUs: that with the least memory in which `current_batch_size` fits "
                    "with the margin; null where it fits none.",
                },
            },
        }
        spec = {
            "title": self.spec_name,
            "type": "object",
            "description": "The spec of an estimate: that of a run, and what is estimated of it.",
            "properties": self.own_properties(),
        }
        return {self.result_name: whole, self.spec_name: spec}

    def submission(self, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
        spec = {name: value for name, value in values.items() if name != "priority"}
        return {"spec": EstimateSpec.from_dict(spec), **requested(values, user)}

    def body_of(self, run: Run) -> dict[str, Any]:
        return {name: value for name, value in super().body_of(run).items() if name not in NOT_OF_ESTIMATES}

    def curves(self, run: Run) -> list[dict[str, Any]]:
        return [
            {
                "gpu": estimate.gpu.name,
                "capacity_bytes": estimate.gpu.total_bytes,
                "limit_bytes": estimate.capacity_bytes,
                "points": [
                    {
                        **{name: getattr(point, name, None) for name in FIGURES},
                        "outcome": Outcome.FITS if point.fits else Outcome.OUT_OF_MEMORY,
                    }
                    for point in estimate.points
                ],
            }
            for estimate in (read_stored(Estimated.from_dict, run.result).estimates if run.result else ())
        ]
