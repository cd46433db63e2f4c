"""A race in words: settings that ran beside today's training in turns."""

from __future__ import annotations

from analysis.models import Run
from analysis.presentation.kinds.presentation import CHANGES, Presentation, endings_of
from analysis.presentation.labels import model_name
from analysis.presentation.unreadable import UnreadableError, read_stored
from engine.documents.raced import OwnRaced, Raced
from engine.progress import RACING_PHASES


class Race(Presentation):
    """It ends with what makes the training faster, or with nothing."""

    mark = "race"
    compared_by = CHANGES
    endings = endings_of("race", "result", failed="the race failed")

    def race(self, run: Run) -> Raced | OwnRaced:
        return read_stored(Raced.from_dict, run.result)

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
