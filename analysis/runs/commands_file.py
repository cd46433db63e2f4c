"""Writes the file of registered commands, for a person at a shell; what it holds besides, comments too, stays."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import tomlkit
from django.conf import settings
from tomlkit.items import AoT

from analysis.runs.commands import RegisteredCommand, command_of, commands_in
from engine.errors import SpecError

_TABLES = "command"


def commands_file() -> Path:
    """Return the file that is read and written, behind a symbolic link the file itself. Raises SpecError."""
    if settings.COMMANDS_FILE is None:
        raise SpecError("MEMORYMARK_COMMANDS", "is not set")
    return Path(settings.COMMANDS_FILE).resolve()


def command_add(table: Mapping[str, Any], *, replaces: bool = False) -> RegisteredCommand:
    """Add a command, checked as at a start. Raises SpecError, naming the key, and changes nothing then."""
    command = command_of(table)
    command.spec({}).check_program()
    with _changed(commands_file()) as document:
        tables = _tables(document)
        at = _place_of(command.name, tables)
        if at is not None and not replaces:
            raise SpecError("name", f"{command.name} is registered already; give --replace, or remove it first")
        fresh = tomlkit.table()
        fresh.update(table)
        if at is None:
            tables.append(fresh)
        else:
            tables[at] = fresh
    return command


def command_remove(name: str) -> None:
    """Remove a command. Raises SpecError where none has this name."""
    with _changed(commands_file()) as document:
        tables = _tables(document)
        if (at := _place_of(name, tables)) is None:
            known = ", ".join(str(each["name"]) for each in tables) or "none"
            raise SpecError("name", f"{name!r} is not registered; one of {known}")
        del tables[at]
        if not tables:
            document.remove(_TABLES)


def _place_of(name: str, tables: AoT) -> int | None:
    return next((at for at, table in enumerate(tables) if table.get("name") == name), None)


def _tables(document: tomlkit.TOMLDocument) -> AoT:
    if _TABLES not in document:
        document[_TABLES] = tomlkit.aot()
    tables = document[_TABLES]
    assert isinstance(tables, AoT)  # the file was checked
    return tables


@contextmanager
def _changed(path: Path) -> Iterator[tomlkit.TOMLDocument]:
    """Give one caller at a time the content to change, and write it as a whole if it is still valid."""
    try:
        with _locked(path.parent):
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            commands_in(text, path)
            document = tomlkit.parse(text)
            yield document
            changed = tomlkit.dumps(document)
            commands_in(changed, path)
            _write(path, changed)
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else exc
        raise SpecError("MEMORYMARK_COMMANDS", f"{path} cannot be changed: {reason}") from exc


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(path: Path, text: str) -> None:
    """Replace the file at once; a new one is readable by its owner alone: a command line may hold a secret."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            _take_over_access(path, descriptor)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _take_over_access(path: Path, descriptor: int) -> None:
    """Give the draft the file's owner, group and mode, so that the portal can read it; another group gains nothing."""
    before = path.stat() if path.exists() else None
    if before is None:
        if os.geteuid() == 0:  # made by root, the file is still the portal's
            folder = path.parent.stat()
            os.fchown(descriptor, folder.st_uid, folder.st_gid)
        return
    for owner in (before.st_uid, -1):
        with suppress(PermissionError):
            os.fchown(descriptor, owner, before.st_gid)
            break
    keeps_group = os.fstat(descriptor).st_gid == before.st_gid
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & (0o777 if keeps_group else 0o707))
