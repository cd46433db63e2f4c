"""Requests of races: of settings alone, because a script is raced where it is, and reported."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser, User

from analysis.api.kinds.measurement import Measurement
from analysis.api.kinds.members import Queued
from analysis.api.kinds.requests import Requests, placed, settings_in
from analysis.runs.kinds.race import RACED_THERE
from engine.questions.faster.result import FasterResult
from engine.questions.faster.spec import FasterSpec
from engine.settings.rank_settings import OF_STARTS
from engine.trainings.script.faster.result import OwnRaceResult


class Race(Measurement):
    takes = (FasterSpec, Queued)
    refused = dict.fromkeys(OF_STARTS, "a race runs on one device: leave it out")
    spec_name = FasterSpec.__name__
    result_type, result_name = FasterResult, FasterResult.__name__

    def submission(self, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
        return placed(FasterSpec.from_dict(settings_in(values)), values, user)


class OwnRace(Requests):
    """No run of this kind can be requested here; only its result is described."""

    result_type, result_name = OwnRaceResult, OwnRaceResult.__name__
    elsewhere = RACED_THERE
