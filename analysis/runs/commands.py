"""The training commands that this host's administrator registered: only these can be started from the portal.

A person chooses a name and a few numbers; the command itself comes from the administrator's file, never from a request.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from analysis.models import CPU
from engine.errors import SpecError
from engine.settings.catalog import WORKLOADS
from engine.settings.spec_checks import given_fields
from engine.text.masking import masked
from engine.trainings.script.ranked_command import OWN_PYTHON
from engine.trainings.script.spec import FUNCTION, FunctionSpec, TuneSpec, function_command

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}", re.ASCII)
_FIXED = (
    *("command", "batch", "batch_in", "name", "directory", "device", "sizes"),
    *("rank", "communication_bytes", "catalogue"),
)
SETTABLE = tuple(each.name for each in fields(TuneSpec) if each.name not in _FIXED)
SET_BY_DEFAULT = (
    *("current_batch_size", "memory_limit_bytes", "max_batch_size", "time_budget_seconds"),
    *("whole_run", "compare_speed"),
)
_KEYS: Mapping[str, Any] = {
    **{"name": str, "command": list, "function": str, "python": str, "batch": str, "directory": str},
    **{"description": str, "settings": list, "report_output": bool, "devices": int},
}
_KINDS_SHOWN = {str: "text", list: "a list of texts", bool: "true or false", int: "a whole number"}
DEVICES_MOST = 64
SET_OF_FUNCTIONS = tuple(name for name in SET_BY_DEFAULT if name != "whole_run")  # they have no epoch to shorten


@dataclass(frozen=True, slots=True)
class RegisteredCommand:
    """A command, and the settings that a person may choose; of a function, the engine makes the command."""

    name: str
    command: tuple[str, ...]
    batch: str = "template"
    directory: str | None = None
    description: str = ""
    settings: tuple[str, ...] = SET_BY_DEFAULT
    report_output: bool = False
    """Whether what the script prints or says in an error is stored with its runs."""
    devices: int = 1
    """How many devices of one host a run of it gets together: a launcher such as torchrun sees them all."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name in WORKLOADS:
            raise SpecError("name", f"{self.name[:80]!r} must be small letters, digits and . _ -, and no model's id")
        if not 1 <= self.devices <= DEVICES_MOST:
            raise SpecError("devices", f"must be 1 to {DEVICES_MOST}")
        if self.devices > 1 and self.batch == FUNCTION:
            raise SpecError("devices", "a function runs in one process, on one device: leave it out")
        for name in self.settings:
            if name not in SETTABLE:
                raise SpecError("settings", f"{name!r} cannot be offered; one of {', '.join(SETTABLE)}")
            if name == "whole_run" and self.batch == FUNCTION:
                raise SpecError("settings", f"{name!r} cannot be offered: a function has no epoch to shorten")
        self.spec({})

    @property
    def shown(self) -> str:
        return self.function or shlex.join(masked(self.command))

    @property
    def function(self) -> str | None:
        return self.spec({}).function

    @property
    def python(self) -> str | None:
        return self.command[0] if self.function and self.command[0] != OWN_PYTHON else None

    def spec(self, given: Mapping[str, Any]) -> TuneSpec:
        """Return what is started with these settings. Raises SpecError, also for a setting that is not offered."""
        for name in given:
            if name not in (*self.settings, "device"):
                raise SpecError(name, f"cannot be set for {self.name}; it takes {', '.join(self.settings)}")
        return self.spec_with(given_fields(TuneSpec, given))

    def spec_with(self, values: Mapping[str, Any]) -> TuneSpec:
        """Return the spec with these values, whatever is offered today: a stored run keeps its own."""
        return TuneSpec(self.command, batch=self.batch, name=self.name, directory=self.directory, **values)


def registered_commands() -> Mapping[str, RegisteredCommand]:
    """Return the commands of this host's file by name. Raises SpecError, which names what is wrong in the file."""
    path = settings.COMMANDS_FILE
    if path is None or (path == settings.COMMANDS_FILE_DEFAULT and not path.exists()):
        return {}
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError as exc:
        raise SpecError("MEMORYMARK_COMMANDS", f"{path} cannot be read: {exc.strerror}") from exc


def command_spec(name: object, given: Mapping[str, Any]) -> TuneSpec:
    """Return the spec of a registered command with these settings. Raises SpecError."""
    commands = registered_commands()
    if not isinstance(name, str) or name not in commands:
        raise SpecError("command", f"is not registered here; one of {', '.join(commands) or 'none'}")
    return commands[name].spec(given)


def stores_output(stored: Mapping[str, Any]) -> bool:
    """Whether the administrator lets the output be stored (unknown: no); a catalogue model runs our own script."""
    if stored.get("catalogue"):
        return True
    try:
        known = registered_commands().get(str(stored.get("name")))
    except SpecError:
        return False
    return known is not None and known.report_output


def devices_of(spec: TuneSpec | FunctionSpec) -> int:
    """Return how many devices of a host a command gets: as registered, or one a rank; one for a CPU or emulation."""
    if isinstance(spec, TuneSpec) and spec.catalogue and not spec.emulated_ranks and spec.device != CPU:
        return int(spec.catalogue["ranks"])
    if isinstance(spec, FunctionSpec) or spec.name is None or spec.emulated_ranks:
        return 1
    known = registered_commands().get(spec.name)
    return 1 if known is None else known.devices


def spec_to_start(stored: Mapping[str, Any]) -> TuneSpec:
    """Return a run's spec, its command as registered here. Raises SpecError if it is gone, another, or offers less.

    A model of the catalogue needs no registration: its command is made again.
    """
    if stored.get("catalogue"):
        return TuneSpec.of_document(stored)
    given = {name: stored[name] for name in (*SETTABLE, "device") if name in stored}
    name = stored.get("name")  # only a registered command has one
    known = None if name is None else registered_commands().get(name)
    if known is None:
        raise SpecError("command", f"{name or stored['model']} is not registered on this host")
    now = (masked(known.command), known.directory, known.batch)
    if now != (masked(stored["command"]), stored["directory"], stored["batch"]):
        raise SpecError("command", f"{stored['name']} was changed since this run was requested: start it again")
    spec = known.spec_with(given)
    default, offered = known.spec({}), (*known.settings, "price_per_hour_usd")  # the price is the device's
    for setting in SETTABLE:
        follows = setting == "compare_speed" and spec.emulate_ranks is not None  # emulated ranks have no speed
        if setting not in offered and not follows and getattr(spec, setting) != getattr(default, setting):
            raise SpecError(setting, f"cannot be set for {known.name} any more: start it again without it")
    spec.check_program()
    return spec


@lru_cache(maxsize=1)
def _read(path: Path, _: int) -> dict[str, RegisteredCommand]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as exc:
        raise SpecError("MEMORYMARK_COMMANDS", f"{path} is no TOML file: {exc}") from exc
    return commands_in(text, path)


def commands_in(text: str, path: Path) -> dict[str, RegisteredCommand]:
    """Read the text of a file of commands. Raises SpecError, which names `path` and what is wrong."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise SpecError("MEMORYMARK_COMMANDS", f"{path} is no TOML file: {exc}") from exc
    tables = content.pop("command", [])
    if content:
        raise SpecError("MEMORYMARK_COMMANDS", f"{path}: {next(iter(content))!r} is unknown, [[command]] is allowed")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise SpecError("MEMORYMARK_COMMANDS", f"{path}: each command begins with [[command]]")
    commands: dict[str, RegisteredCommand] = {}
    for number, table in enumerate(tables, 1):
        try:
            command = command_of(table)
        except SpecError as exc:
            raise SpecError("MEMORYMARK_COMMANDS", f"{path}, command {number}: {exc}") from exc
        if command.name in commands:
            raise SpecError("MEMORYMARK_COMMANDS", f"{path}: {command.name} is registered twice")
        commands[command.name] = command
    return commands


def command_of(table: Mapping[str, Any]) -> RegisteredCommand:
    """Read one [[command]]. Raises SpecError, naming the key."""
    for name, value in table.items():
        if name not in _KEYS:
            raise SpecError(name, f"unknown key; allowed are {', '.join(_KEYS)}")
        is_other = not isinstance(value, _KEYS[name]) or (isinstance(value, bool) and _KEYS[name] is not bool)
        if is_other or (_KEYS[name] is list and not all(isinstance(v, str) for v in value)):
            raise SpecError(name, f"must be {_KINDS_SHOWN[_KEYS[name]]}")
    if "name" not in table:
        raise SpecError("name", "is missing")
    _check_one_kind(table)
    directory = table.get("directory")
    if directory is not None and not (Path(directory).is_absolute() and Path(directory).is_dir()):
        raise SpecError("directory", f"{directory} is no folder with an absolute path")
    values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in table.items()}
    python = values.pop("python", None)
    if (function := values.pop("function", None)) is not None:
        values |= {"command": function_command(function, python), "batch": FUNCTION}
        values.setdefault("settings", SET_OF_FUNCTIONS)
    return RegisteredCommand(**values)


def _check_one_kind(table: Mapping[str, Any]) -> None:
    """Raise SpecError unless it is a command or a function, with what belongs to it."""
    if "function" in table and "command" in table:
        raise SpecError("function", "stands beside a command: register exactly one of them")
    if "function" not in table and "command" not in table:
        raise SpecError("command", "is missing, and so is function: register exactly one of them")
    if "function" in table and "batch" in table:
        raise SpecError("batch", "a function is called with its batch size: leave it out")
    if "function" not in table and table.get("batch") == FUNCTION:
        raise SpecError("batch", "is of functions: name one as function, in place of the command")
    python = table.get("python")
    if python is not None and "function" not in table:
        raise SpecError("python", "is for a function; a command begins with its own program")
    if python is not None and not (Path(python).is_absolute() and Path(python).is_file()):
        raise SpecError("python", f"{python} is no program with an absolute path")
