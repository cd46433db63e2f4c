"""What pages show of people's own scripts: the registered commands with their runs, and the newest runs of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.urls import reverse

from analysis.lists.runs.columns import OF_SCRIPTS
from analysis.models import Run
from analysis.pages.run_table import run_table
from analysis.presentation.run_rows import HistoryRow, history_rows
from analysis.runs.commands import RegisteredCommand, registered_commands
from engine.errors import SpecError

RUNS_OF_A_COMMAND = 3
NEWEST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class OfferedScript:
    name: str
    last: HistoryRow | None

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


def runs_of(command: RegisteredCommand, most: int = RUNS_OF_A_COMMAND) -> list[HistoryRow]:
    made = Run.objects.for_history().of_command(command.name)
    return history_rows(made.defer("result", "memory_curve")[:most], {})


def newest_script_runs() -> dict[str, Any]:
    newest = Run.objects.for_history().of_own_scripts().defer("result", "memory_curve")[:NEWEST_SHOWN]
    return run_table(history_rows(newest, {}), OF_SCRIPTS)
