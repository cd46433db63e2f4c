"""A race: which settings make a training faster than today's. It finds no batch size of the run's own settings."""

from __future__ import annotations

from typing import Any

from analysis.models import Run
from analysis.runs.columns.result_columns import race_columns
from analysis.runs.kinds.rules import Rules
from engine.faster.spec import FasterSpec
from engine.kinds import KINDS


class Race(Rules):
    """The rules of a race."""

    spec_types = (FasterSpec,)
    engine = KINDS.race
    columns = staticmethod(race_columns)

    def exit_status(self, found: Any) -> int:
        return 0

    def is_shareable(self, run: Run) -> bool:
        return False
