"""What pages show of people's own scripts: the registered commands with their runs, and the newest runs of all."""

from __future__ import annotations

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


def scripts_offered(most: int) -> tuple[list[dict[str, Any]], int]:
    """Return that many registered commands with their last runs, and how many more there are."""
    commands = list(commands_offered().values())
    return [_offered(each) for each in commands[:most]], max(0, len(commands) - most)


def _offered(command: RegisteredCommand) -> dict[str, Any]:
    last = next(iter(runs_of(command, most=1)), None)
    filled = f"command={quote(command.name)}" if last is None else f"from={last.run.pk}"
    address = f"{reverse('analysis:commands')}?{filled}#command-{command.name}"
    return {"name": command.name, "last": last, "address": address}


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
