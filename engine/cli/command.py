"""A command of the command line: options in titled groups, help, and errors in the words that were typed.

click parses and suggests, rich-click writes the help; CONTRIBUTING.md says why these two. This module adds help in two
lengths, options that exclude each other, and the engine's errors.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import rich_click as click
from click.types import StringParamType
from rich_click import RichArgument, RichCommand, RichHelpConfiguration, RichOption

from ..errors import EngineError, SpecError, WorkloadFailed
from ..program import MODELS_NEED, PROGRAM, not_installed
from ..settings.spec_checks import not_offered
from .printing.output import print_failure
from .printing.terminal import say_error

TRAIN, WHERE, OUTPUT, ADVANCED = "What to train", "Where and limits", "Output", "Advanced"
"""The titles under which help lists the options."""
HELP_STYLE = RichHelpConfiguration(
    theme="slim",
    enable_theme_env_var=False,
    max_width=80,
    padding_helptext_first_line=(0, 0, 1, 0),
    padding_helptext=(0, 0, 1, 0),
    text_paragraph_linebreaks="\n\n",
    options_panel_title="Help",
    default_string="{}",
    style_helptext="",
    style_options_panel_title_style="bold",
    style_commands_panel_title_style="bold",
)
HELP_SETTINGS = {"help_option_names": ["-h", "--help"], "rich_help_config": HELP_STYLE}

_HOW_TO_LIST = {"model": f"`{PROGRAM} list models` lists them"}
_FIELD_NAME = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")


class Command(RichCommand):
    """One command. `run` returns the exit status; at most one of each group of options `exclusive` may be given."""

    def __init__(
        self,
        name: str,
        run: Callable[[SimpleNamespace], int],
        *,
        params: Sequence[click.Parameter],
        help: str,
        epilog: str = "",
        exclusive: Sequence[Sequence[str]] = (),
        context_settings: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        hidden = sum(getattr(param, "hidden", False) for param in params)
        last = sorted(params, key=lambda param: getattr(param, "panel", None) == ADVANCED)
        super().__init__(
            name,
            params=[*last, *([_help_all(hidden)] if hidden else [])],
            help=help,
            epilog=epilog,
            context_settings=HELP_SETTINGS | (context_settings or {}),
            **settings,
        )
        self._run, self._exclusive = run, [("json", "events"), *exclusive]

    def invoke(self, ctx: click.Context) -> int:
        """Run the command; an error of the engine is printed and becomes an exit status."""
        self._check_exclusive(ctx)
        options, started = SimpleNamespace(**ctx.params), time.monotonic()
        events = bool(ctx.params.get("events"))
        try:
            return self._run(options)
        except EngineError as error:
            return print_failure(error if events else in_typed_words(error, ctx), started=started, events=events)
        except ModuleNotFoundError as error:
            if error.name not in MODELS_NEED:
                raise
            say_error(not_installed(error.name))
            return WorkloadFailed.exit_status

    def _check_exclusive(self, ctx: click.Context) -> None:
        for group in self._exclusive:
            given = [name for name in group if ctx.params.get(name) not in (None, False)]
            if len(given) > 1:
                names = " and ".join(_typed_names(ctx)[name] for name in given)
                raise click.UsageError(f"{names} cannot be given together", ctx)


class Text(StringParamType):
    def __init__(self, name: str) -> None:
        self.name = name


class Offered(click.Choice[str]):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            self.fail(not_offered(value, tuple(map(str, self.choices))), param, ctx)
        return str(value)


def option(*names: str, panel: str, help: str, default_text: str | None = None, **settings: Any) -> RichOption:
    """Declare an option, in `--help-all` alone if advanced. `default_text` is shown; what is left out is None."""
    shown = None if default_text is None else f"default: {default_text}"  # click puts it in brackets
    return RichOption(list(names), panel=panel, help=help, show_default=shown, hidden=panel == ADVANCED, **settings)


def flag(*names: str, panel: str, help: str, **settings: Any) -> RichOption:
    return option(*names, panel=panel, help=help, is_flag=True, default=None, **settings)


def argument(name: str, *, panel: str, help: str, required: bool = False, **settings: Any) -> RichArgument:
    return RichArgument([name], panel=panel, help=help, required=required, **settings)


def in_typed_words(error: EngineError, ctx: click.Context) -> EngineError:
    """Return an error about a field as one about the option; errors about the JSON of --spec stay as they are."""
    is_about_json = ctx.params.get("spec") is not None and error.field != "spec"
    if not isinstance(error, SpecError) or error.field is None or is_about_json:
        return error
    names = _typed_names(ctx)
    text = _FIELD_NAME.sub(lambda found: names.get(found[0], found[0]), error.reason)
    advice = _HOW_TO_LIST.get(error.field, "") if "such as" in text else ""
    return SpecError(names.get(error.field, error.field), f"{text}; {advice}" if advice else text)


def _typed_names(ctx: click.Context) -> dict[str, str]:
    """Return the options of a command by the field they set; `device_option` sets the device only where it is given."""
    return {"reserve_bytes": "--reserve"} | {  # it sets either of two fields
        str(param.name).removesuffix("_option"): max(param.opts, key=len)
        for param in ctx.command.params
        if isinstance(param, click.Option) and (ctx.params.get(str(param.name)) or param.name != "device_option")
    }


def _help_all(hidden: int) -> RichOption:
    return RichOption(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_all,
        help=f"Show all options: {hidden} more.",
    )


def _show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    for param in ctx.command.params:
        if isinstance(param, click.Option):
            param.hidden = False
    click.echo(ctx.get_help())
    ctx.exit()
