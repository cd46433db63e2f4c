"""Requests of measurements."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import AnonymousUser, User

from analysis.api.kinds.members import Queued
from analysis.api.kinds.requests import Requests, placed, settings_in
from analysis.models import Run
from engine.estimate.spec import OWN
from engine.settings.rank_settings import RankStarts
from engine.settings.spec import RunSpec
from engine.trainings.script.ranked_spec import requested_spec

_FOR_ESTIMATES = "is for estimates: add kind estimate"


class Measurement(Requests):
    """A body has the keys of a RunSpec, and of RankStarts for several ranks."""

    takes: ClassVar[tuple[type, ...]] = (RunSpec, RankStarts, Queued)
    refused = {
        **dict.fromkeys(OWN, _FOR_ESTIMATES),
        "gpu": f"{_FOR_ESTIMATES}, or name a device to measure on",
    }

    def submission(self, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
        return placed(requested_spec(settings_in(values)), values, user)

    def body_of(self, run: Run) -> dict[str, Any]:
        return measurement_body(super().body_of(run), run)


def measurement_body(values: dict[str, Any], run: Run) -> dict[str, Any]:
    """Return the body that requests these settings in the run's place, at its device's price unless it had its own."""
    device = run.requested_device.device if run.requested_device else run.requested_kind
    kept = {name: value for name, value in values.items() if name != "price_per_hour_usd" or not run.uses_device_price}
    return {**kept, "accepts_shared_device": run.accepts_shared_device, "device": device}
