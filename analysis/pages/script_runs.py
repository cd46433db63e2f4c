"""What pages show of people's own scripts: the registered commands with their runs, and the newest runs of all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from django.urls import reverse

from analysis.models import Run
from analysis.presentation.formatting import bytes_text, percent
from analysis.presentation.labels import Chip
from analysis.presentation.run_rows import HistoryRow, history_rows
from analysis.runs.commands import RegisteredCommand, registered_commands
from engine.errors import SpecError

RUNS_OF_A_COMMAND = 3
NEWEST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class ScriptRun:
    """A run of somebody's own script, as a row."""

    row: HistoryRow

    @property
    def run(self) -> Run:
        return self.row.run

    @property
    def chip(self) -> Chip:
        return self.row.chip

    @property
    def answer(self) -> str:
        """Write what it found: "Use 56", "Up to 60", "At least 60", "Does not fit"; empty before there is a result."""
        run = self.run
        if self.row.does_not_fit:
            return "Does not fit"
        if run.recommended_batch_size is not None:
            return f"Use {run.recommended_batch_size:,}"
        if not run.largest_batch_size:
            return ""
        return f"{'Up to' if run.certified else 'At least'} {run.largest_batch_size:,}"

    @property
    def waste_share(self) -> str:
        """Write the share of memory that today's batch size leaves unused: "60.9 %"; empty where it is unknown."""
        unused, limit = self.run.current_waste_bytes, self.run.limit_bytes
        return percent(unused / limit) if unused is not None and limit else ""

    @property
    def waste(self) -> str:
        """Write what today's batch size leaves unused: "624 MiB (60.9 %)"; empty where it was not measured."""
        return f"{bytes_text(self.run.current_waste_bytes)} ({self.waste_share})" if self.waste_share else ""


@dataclass(frozen=True, slots=True)
class OfferedScript:
    """A registered command with its last run, as the start page lists it."""

    name: str
    last: ScriptRun | None

    @property
    def address(self) -> str:
        filled = f"command={quote(self.name)}" if self.last is None else f"from={self.last.run.pk}"
        return f"{reverse('analysis:commands')}?{filled}#command-{self.name}"


def scripts_offered(most: int) -> tuple[list[OfferedScript], int]:
    """Return that many registered commands, and how many more there are."""
    commands = list(commands_offered().values())
    shown = [OfferedScript(each.name, next(iter(runs_of(each, most=1)), None)) for each in commands[:most]]
    return shown, len(commands) - len(shown)


def commands_offered() -> dict[str, RegisteredCommand]:
    try:
        return dict(registered_commands())
    except SpecError:
        return {}


def runs_of(command: RegisteredCommand, most: int = RUNS_OF_A_COMMAND) -> list[ScriptRun]:
    made = Run.objects.for_history().of_command(command.name)
    return script_runs(made.defer("result", "memory_curve")[:most])


def newest_script_runs() -> list[ScriptRun]:
    return script_runs(Run.objects.for_history().of_own_scripts().defer("result", "memory_curve")[:NEWEST_SHOWN])


def script_runs(runs: Iterable[Run]) -> list[ScriptRun]:
    return [ScriptRun(row) for row in history_rows(runs, {})]
