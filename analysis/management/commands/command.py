"""`python manage.py command add tagger -- python train.py ...`: registers what pages and API start by name."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from analysis.runs.commands import RegisteredCommand, registered_commands
from analysis.runs.commands_file import command_add, command_remove, commands_file
from engine.errors import EngineError, SpecError
from engine.trainings.script.spec import BATCH_SIZE, WAYS_BY_NAME


class _ActionParser(CommandParser):
    """Takes all after the first `--` as the training command: versions of argparse differ in which `--` they drop."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        given = list(args or ())
        at = given.index("--") if "--" in given else len(given)
        found, unknown = super().parse_known_args(given[:at], namespace)
        found.command = given[at + 1 :]
        return found, unknown


class Command(BaseCommand):
    help = "Register your training commands, so that people can start them on the page Your scripts."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=_ActionParser)
        usage = f"manage.py command add NAME [options] -- python train.py --batch-size {BATCH_SIZE}"
        add = actions.add_parser("add", usage=usage, help="register a command: NAME [options] -- python train.py ...")
        _add_shared_options(add)
        option = "append this option of the script with the batch size: batch-size, or train.batch_size= for Hydra"
        add.add_argument("--batch-option", metavar="OPTION", help=option)
        way = f"how else the batch size gets in: {', '.join(WAYS_BY_NAME)}"
        add.add_argument("--batch", choices=WAYS_BY_NAME, metavar="WAY", help=way)
        several = "devices of one host that each run gets together, all or none (default: 1)"
        add.add_argument("--devices", type=int, metavar="COUNT", help=several)
        function = actions.add_parser("add-function", help="register a function: NAME package.module:function")
        _add_shared_options(function)
        function.add_argument("function", metavar="FUNCTION", help="package.module:function")
        function.add_argument("--python", metavar="PATH", help="the Python that runs it (default: the portal's own)")
        actions.add_parser("list", help="show the registered commands")
        actions.add_parser("check", help="check that each can be started on this host")
        remove = actions.add_parser("remove", help="remove a command; its runs stay")
        remove.add_argument("name", metavar="NAME")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['action'].replace('-', '_')}")(options)
        except EngineError as exc:
            raise CommandError(str(exc), returncode=exc.exit_status) from exc

    def _add(self, options: Mapping[str, Any]) -> None:
        table: dict[str, Any] = {"command": [*options["command"], *_batch_parts(options["batch_option"])]}
        given = {name: options[name] for name in ("batch", "devices") if options[name] is not None}
        self._register(table | given, options)

    def _add_function(self, options: Mapping[str, Any]) -> None:
        python = {"python": str(Path(options["python"]).absolute())} if options["python"] else {}
        self._register({"function": options["function"], **python}, options)

    def _register(self, table: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        directory = str(Path(options["directory"] or ".").absolute())  # the portal's own folder is another one
        offer = options["offer"] and [name.strip() for name in options["offer"].split(",")]
        shared = {"directory": directory, "description": options["description"], "settings": offer}
        shared["report_output"] = options["report_output"]
        given = {name: value for name, value in shared.items() if value}
        command = command_add({"name": options["name"], **table, **given}, replaces=options["replace"])
        self.stdout.write(f"{command.name} is registered in {commands_file()}: {command.shown}")
        if missing := _missing_script(command):
            self.stderr.write(f"Warning: {missing}")
        self.stdout.write("People start it on the page Your scripts. Nothing has to be restarted.")

    def _list(self, options: Mapping[str, Any]) -> None:
        for command in registered_commands().values():
            folder = f" (in {command.directory})" if command.directory else ""
            together = f", {command.devices} devices together" if command.devices > 1 else ""
            self.stdout.write(f"{command.name}: {command.shown}{folder}{together}")
        if not registered_commands():
            self.stdout.write(f"No command is registered. The file is {commands_file()}.")

    def _check(self, options: Mapping[str, Any]) -> None:
        """Check the file, then each program; exits with 2 where one is wrong."""
        wrong = 0
        for command in registered_commands().values():
            try:
                command.spec({}).check_program()
            except SpecError as error:
                wrong += 1
                self.stderr.write(f"{command.name}: {error}")
                continue
            if missing := _missing_script(command):
                wrong += 1
                self.stderr.write(f"{command.name}: {missing}")
            else:
                self.stdout.write(f"{command.name}: ok")
        if wrong:
            raise CommandError(f"{wrong} cannot be started on this host", returncode=SpecError.exit_status)
        if not registered_commands():
            self.stdout.write("No command is registered.")

    def _remove(self, options: Mapping[str, Any]) -> None:
        command_remove(options["name"])
        self.stdout.write(f"{options['name']} is removed; its runs stay.")


def _missing_script(command: RegisteredCommand) -> str:
    """Say which script is missing in the command's directory, by the first .py: a later one may be an argument."""
    folder = Path(command.directory or Path.cwd())
    script = next((part for part in command.command if part.endswith(".py") and not command.function), None)
    if script is None or (folder / script).is_file():
        return ""
    return f"{script} is not in {folder}; give its folder with --directory."


def _add_shared_options(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="small letters, digits and . _ -")
    parser.add_argument("--directory", metavar="FOLDER", help="where it is started (default: the current folder)")
    parser.add_argument("--description", metavar="TEXT", help="what people read about it")
    parser.add_argument("--offer", metavar="NAMES", help="the settings that people may choose, between commas")
    stored = "store what the script prints, and its errors' messages, where everybody who sees a run reads them"
    parser.add_argument("--report-output", action="store_true", help=stored)
    parser.add_argument("--replace", action="store_true", help="replace the command of this name")


def _batch_parts(option: str | None) -> tuple[str, ...]:
    """Write the option with its value: --batch-size {batch_size}, or train.batch_size={batch_size}."""
    if not option:
        return ()
    if option.endswith("="):
        return (f"{option}{BATCH_SIZE}",)
    return (option if option.startswith("-") else f"--{option}", BATCH_SIZE)
