"""Requests of races: of settings alone, because a script is raced where it is, and reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analysis.api.kinds.measurement import measurement_body
from analysis.api.kinds.requests import VERSION_OF_FORM, Components, Requests, placed, settings_in
from analysis.api.kinds.setting_schema import properties_of
from analysis.models import Run
from analysis.runs.kinds.race import RACED_THERE
from engine.estimate.spec import OWN
from engine.faster.result import FasterResult
from engine.faster.spec import FasterSpec
from engine.settings.rank_settings import OF_STARTS
from engine.tune.faster.result import OwnRaceResult

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


class Race(Requests):
    """A body has the keys of a FasterSpec, and those about its place in the queue."""

    spec_name = FasterSpec.__name__
    result_type, result_name = FasterResult, FasterResult.__name__
    refused = dict.fromkeys(OF_STARTS, "a race runs on one device: leave it out")
    only_others = ("check_batch_size", "start_batch_size", "soak_steps", *OWN, *OF_STARTS)

    def own_properties(self) -> dict[str, Any]:
        tried = properties_of(FasterSpec)["tried"]
        return {"tried": {**tried, "description": f"Of a race. {tried['description']}"}}

    def described_result(self) -> Components:
        headline = {"type": "string", "description": "What makes the training faster, in a sentence."}
        return {"FasterResult": {"properties": {"schema": VERSION_OF_FORM, "headline": headline}}}

    def submission(self, values: dict[str, Any], user: User | AnonymousUser) -> dict[str, Any]:
        return placed(FasterSpec.from_dict(settings_in(values)), values, user)

    def body_of(self, run: Run) -> dict[str, Any]:
        return measurement_body(super().body_of(run), run)


class OwnRace(Requests):
    """No run of this kind can be requested here; only its result is described."""

    result_type, result_name = OwnRaceResult, OwnRaceResult.__name__
    elsewhere = RACED_THERE

    def described_result(self) -> Components:
        headline = {"type": "string", "description": "What makes the script faster, in a sentence."}
        goal = {"type": "string", "description": "What the command was tuned for."}
        derived = {
            "model": {"type": "string", "description": "What is raced, in a word: its name, or its script's."},
            "function": {"type": ["string", "null"], "description": "None: a function is not raced."},
            "catalogue": {
                "type": ["object", "null"],
                "description": "The settings of a catalogue model, if it is one.",
            },
        }
        return {
            "OwnRaceSpec": {"properties": derived},
            "OwnRaceResult": {"properties": {"schema": VERSION_OF_FORM, "goal": goal, "headline": headline}},
        }
