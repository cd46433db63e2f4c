"""The names of the kinds of a run; `kinds` has what the engine knows of each."""

from __future__ import annotations

from enum import StrEnum


class RunKind(StrEnum):
    """What a run is for: figures of a device, of the predictor, of settings, or a check that what is measured is right.

    A command measures a training command or a function of somebody's own, and no model of the catalogue. A validation
    runs on a device as a measurement does, but finds no batch size: nothing counts it as one. A race of settings
    against today's training does not count as one either; an own race is that of a command.
    """

    MEASUREMENT = "measurement"
    COMMAND = "command"
    ESTIMATE = "estimate"
    VALIDATION = "validation"
    RACE = "race"
    OWN_RACE = "own_race"

    @property
    def label(self) -> str:
        return self.replace("_", " ").capitalize()
