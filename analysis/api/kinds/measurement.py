"""Requests of measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analysis.api.kinds.requests import VERSION_OF_FORM, Components, Requests, placed, settings_in
from analysis.models import Run
from engine.estimate.spec import OWN
from engine.spec import measured_spec

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

_FOR_ESTIMATES = "is for estimates: add kind estimate"


class Measurement(Requests):
    """A body has the keys of a RunSpec, and those about its place in the queue."""

    refused = {
        **dict.fromkeys(OWN, _FOR_ESTIMATES),
        "gpu": f"{_FOR_ESTIMATES}, or name a device to measure on",
    }
    only_others = (*OWN, "price_per_hour_usd")

    def described_result(self) -> Components:
        added = {
            "schema": VERSION_OF_FORM,
            "fits": {"type": ["boolean", "null"], "description": "Whether `check_batch_size` of the spec trained."},
            "kinds": {
                "type": "object",
                "additionalProperties": {"enum": ["measured", "estimated", "derived", "assumed"]},
                "description": "Kind of each figure, by its path or group.",
            },
        }
        return {"RunResult": {"properties": added}}

    def submission(self, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
        return placed(measured_spec(settings_in(values)), values, user)

    def body_of(self, run: Run) -> dict[str, Any]:
        values = super().body_of(run)
        if run.uses_device_price:
            del values["price_per_hour_usd"]
        device = run.requested_device.device if run.requested_device else run.requested_kind
        return {**values, "accepts_shared_device": run.accepts_shared_device, "device": device}
