"""A race: what makes a training faster than today's. It finds no batch size of the run's own settings."""

from __future__ import annotations

from typing import Any, ClassVar

from analysis.models import CPU, Run
from analysis.runs.columns.result_columns import race_columns
from analysis.runs.kinds.rules import Place, Rules
from engine.questions.faster.spec import FasterSpec
from engine.trainings.script.faster.spec import OWN, OwnRaceSpec

RACED_THERE = "a script is raced where it is: memorymark tune --faster --report-to URL -- COMMAND"


class Race(Rules):
    spec_types: ClassVar[tuple[type, ...]] = (FasterSpec,)
    columns = staticmethod(race_columns)

    def exit_status(self, found: Any) -> int:
        return 0

    def is_shareable(self, run: Run) -> bool:
        return False


class OwnRace(Race):
    """The rules of a race of a command, which no portal starts: it is raced where the script is, and reported."""

    spec_types = (OwnRaceSpec,)
    copied = ("current_batch_size",)

    def not_again(self, run: Run) -> str:
        return RACED_THERE

    def spec_columns(self, spec: OwnRaceSpec) -> dict[str, Any]:
        """Return its columns; the batch size of a script that trains with its own is known by the result alone."""
        columns = super().spec_columns(spec)
        return columns | {"current_batch_size": None} if spec.batch == OWN else columns

    def devices_used(self, found: Any) -> int:
        """Return one device a rank; the ranks of a CPU share it."""
        return 1 if found.device.kind == CPU else max(found.today.ranks, 1)

    def place(self, run: Run) -> Place | None:
        return None
