"""Requests of races of a command: none, because a script is raced where it is. Its result is described."""

from __future__ import annotations

from analysis.api.kinds.requests import VERSION_OF_FORM, Components, Requests
from analysis.runs.kinds.own_race import RACED_THERE
from engine.tune.faster.result import OwnRaceResult


class OwnRace(Requests):
    """It is reported."""

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
