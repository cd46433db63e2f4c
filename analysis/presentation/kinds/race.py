"""A race in words: what ran beside today's training in turns, settings of a model or changes of somebody's script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from analysis.models import Run
from analysis.presentation.kinds.presentation import CHANGES, Presentation, endings_of
from analysis.presentation.kinds.size import Command
from analysis.presentation.labels import model_name
from analysis.presentation.unreadable import UnreadableError, read_stored
from engine.facts.progress import RACING_OWN_PHASES, RACING_PHASES
from engine.questions.documents.raced import AnyRace, OwnRaced, Raced


class Race(Presentation):
    mark = "race"
    compared_by = CHANGES
    endings = endings_of("race", "result", failed="the race failed")
    read: ClassVar[staticmethod[[Any], AnyRace]] = staticmethod(Raced.from_dict)

    def race(self, run: Run) -> AnyRace:
        return read_stored(self.read, run.result)

    def found(self, run: Run) -> str:
        try:
            race = self.race(run)
        except UnreadableError:
            return "finished"
        return f"✓ {race.in_short}" if race.is_answered else race.in_short

    def answer(self, run: Run) -> str:
        race = self.race(run)
        return f"{race.headline} {race.basis}".strip()

    def doing(self, run: Run) -> str:
        return f"Racing settings of {model_name(run.model)}"

    def phases(self, run: Run) -> tuple[str, ...]:
        return RACING_PHASES


class OwnRace(Race):
    runs_own_code = True
    has_limit = False
    read = staticmethod(OwnRaced.from_dict)

    def doing(self, run: Run) -> str:
        return f"Racing what makes {model_name(run.model)} faster"

    def phases(self, run: Run) -> tuple[str, ...]:
        return RACING_OWN_PHASES

    def settings(self, spec: Mapping[str, Any]) -> list[str]:
        return Command().settings(spec)
