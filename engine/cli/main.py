"""The command line: `python -m engine measure bert`. Works with no Django and no database.

`python -m engine bert` is short for `python -m engine measure bert`, as is anything else that begins with a model or
an option. Each command is in its own module, which is imported when the command runs, so that help is quick.

Exit statuses are in `exit_status` and `errors`; 130 is interrupted, 143 stopped by SIGTERM, and 141 that nobody reads
the output any more (as after `| head -1`).
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pkgutil import resolve_name
from typing import NoReturn

import click
from rich_click import RichCommand, RichGroup

from .. import __version__
from ..errors import SpecError
from ..machine.execution import event_of
from ..program import PROGRAM
from ..settings.catalog import WORKLOADS
from ..settings.catalog.from_config import CONFIG
from .command import HELP_SETTINGS
from .printing.output import print_json, run_command
from .printing.terminal import say, say_error

MEASURE = "measure"
HELP_SECTIONS = {
    "Begin": {"demo": ("demo:COMMAND", "Tune a small training that comes with it: about a minute, no GPU")},
    "Measure": {
        MEASURE: ("measure:COMMAND", "Find the largest and fastest batch size of a model"),
        "tune": ("tune:COMMAND", "Find the exact largest batch size of your own script"),
        "faster": ("faster:COMMAND", "Race settings: what makes this training faster?"),
        "validate": ("validate:COMMAND", "Validate the backward pass, or torch.compile"),
        "calibrate": ("calibrate:COMMAND", "Measure the constants of a GPU, for its estimates"),
    },
    "Predict": {
        "estimate": ("estimate:COMMAND", "Estimate memory on a GPU you do not have"),
        "fit": ("fit:COMMAND", "Find the GPUs that train a batch size; write a Slurm request"),
    },
    "Your own training": {
        "watch": ("watch:COMMAND", "Run it once, as it is: what it uses, whether it lasts, why it died"),
        "explain": ("explain:COMMAND", "Say why a training died, by its traceback or log"),
    },
    "Use results": {
        "advise": ("advise:COMMAND", "Keep a global batch exactly; code to paste"),
        "check": ("check:COMMAND", "Stop a pipeline where a training got worse"),
        "sync": ("sync:COMMAND", "Send stored runs to a portal"),
        "mcp": ("mcp:COMMAND", "Serve fit, tune, check and explain to a coding agent"),
    },
    "Look up": {"list": ("listings:LIST", "List models, GPUs or devices")},
    "": {name: (f"listings:{name.upper()}", f"Short for `list {name}`") for name in ("models", "gpus", "devices")},
}
"""Place and help of each command, by its title in help; those without a title are hidden."""
COMMANDS = {name: place for titled in HELP_SECTIONS.values() for name, (place, _) in titled.items()}
FORMER_OPTIONS = {"--validate": ("validate", "--check", "compile"), "--validate-backward": ("validate",)}
"""What runs in place of an option that `measure` had."""
_OF_ALL_COMMANDS = ("-h", "--help", "--version")

OVERVIEW = f"""MemoryMark finds the largest and the fastest batch size of a training.

See it work, in a minute  {PROGRAM} demo
Measure your own script   {PROGRAM} tune -- python train.py {{batch_size}}
Measure a model here      {PROGRAM} measure bert
Estimate for another GPU  {PROGRAM} estimate bert --gpu a10
List the models           {PROGRAM} list models

All commands              {PROGRAM} --help
One command               {PROGRAM} measure --help
"""


class _Commands(RichGroup):
    """All commands. Their modules are imported when they are run; help lists them without."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that runs; an unknown word may also be a misspelt model."""
        try:
            name, _, rest = super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            message = f"{error.command_name[:80]!r} is no command and no model."
            raise click.NoSuchCommand(error.command_name, message, [*self.commands, *WORKLOADS], ctx) from None
        assert name is not None
        return name, resolve_name(f"{__package__}.{COMMANDS[name]}"), rest


def main(argv: list[str] | None = None) -> int:
    signal.signal(signal.SIGTERM, _stop)
    arguments = sys.argv[1:] if argv is None else argv
    return run_command(lambda: command(arguments))


def command(arguments: Sequence[str]) -> int:
    if not arguments:
        say(OVERVIEW, sys.stderr, end="")
        return SpecError.exit_status
    group = _group()
    try:
        with group.make_context(PROGRAM, with_verb(arguments)) as ctx:
            return int(group.invoke(ctx))
    except click.exceptions.Exit as ended:  # help or the version was printed
        return ended.exit_code
    except click.UsageError as error:
        if isinstance(error, click.NoSuchOption) and error.option_name == arguments[0]:  # no command was named
            meant = [*get_close_matches(error.option_name, _OF_ALL_COMMANDS), *(error.possibilities or [])]
            error = click.NoSuchOption(error.option_name, possibilities=meant, ctx=error.ctx)
        if "--events" in arguments:
            field = "model" if isinstance(error, click.NoSuchCommand) else "arguments"
            refused = SpecError(field, error.format_message())
            print_json(event_of("error", error=refused.to_dict()))
        say_error(_describe(error, with_verb(arguments)[0]))
        return SpecError.exit_status


def with_verb(arguments: Sequence[str]) -> list[str]:
    """Return the arguments beginning with a verb: `measure` may be left out before a model or an option.

    >>> with_verb(["--validate", "gpt2", "cpu"])
    ['validate', '--check', 'compile', 'gpt2', 'cpu']
    """
    first = arguments[0]
    former = next((each for each in FORMER_OPTIONS if each in arguments), None)
    if former and first not in COMMANDS:
        others = [word for word in arguments if word != former]
        return [*FORMER_OPTIONS[former], *(others or ["bert"])]
    is_short = first in WORKLOADS or first == CONFIG or (first.startswith("-") and first not in _OF_ALL_COMMANDS)
    return [MEASURE, *arguments] if is_short else list(arguments)


def _group() -> RichGroup:
    group = _Commands(
        name=PROGRAM,
        help="Find the largest and the fastest batch size of a training, by real training steps.\n\n"
        f"`{PROGRAM} bert` is short for `{PROGRAM} measure bert`.",
        context_settings=HELP_SETTINGS,
    )
    click.version_option(__version__, message="MemoryMark %(version)s")(group)
    for title, commands in HELP_SECTIONS.items():
        for name, (_, text) in commands.items():
            group.add_command(RichCommand(name=name, help=text, hidden=not title, panel=title or None))
    return group


def _describe(error: click.UsageError, verb: str) -> str:
    text = " ".join(error.format_message().split())
    text = text if text.endswith((".", "?", "?)")) else f"{text}."
    if isinstance(error, click.NoSuchCommand):
        return f"{text} See `{PROGRAM} --help` and `{PROGRAM} list models`."
    return f"{text} See `{PROGRAM} {verb} --help`."


def _stop(*_: object) -> NoReturn:
    raise SystemExit(128 + signal.SIGTERM)
