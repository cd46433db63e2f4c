"""A race of a command in words: what was set of somebody's own script from outside, in starts in turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.models import Run
from analysis.presentation.kinds.command import Command
from analysis.presentation.kinds.race import Race
from analysis.presentation.labels import model_name
from analysis.presentation.unreadable import read_stored
from engine.documents.raced import OwnRaced
from engine.progress import RACING_OWN_PHASES


class OwnRace(Race):
    """It ends as a race of settings does; of its script only the command is known."""

    runs_own_code = True
    has_limit = False

    def race(self, run: Run) -> OwnRaced:
        return read_stored(OwnRaced.from_dict, run.result)

    def doing(self, run: Run) -> str:
        return f"Racing what makes {model_name(run.model)} faster"

    def phases(self, run: Run) -> tuple[str, ...]:
        return RACING_OWN_PHASES

    def settings(self, spec: Mapping[str, Any]) -> list[str]:
        return Command().settings(spec)
