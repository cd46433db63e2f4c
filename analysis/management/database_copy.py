"""Copies the whole database to a file and back: SQLite by its own backup, PostgreSQL by pg_dump and pg_restore."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from django.core.management.base import CommandError
from django.db import connection

_BUSY_SECONDS = 30.0


def copy_out(file: Path) -> None:
    """Write a consistent copy, also while the portal runs; in place of the file only when it is whole."""
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        if connection.vendor == "sqlite":
            with closing(_opened(connection.settings_dict["NAME"])) as source, closing(_opened(partial)) as target:
                source.backup(target)
                target.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
        else:
            _run_client("pg_dump", "--format=custom", f"--file={partial}")
        partial.replace(file)
    except (OSError, sqlite3.Error) as exc:
        raise CommandError(f"{file} cannot be written: {exc}") from exc
    finally:
        partial.unlink(missing_ok=True)


def copy_in(file: Path) -> None:
    """Replace the content of the database by a copy's, in one transaction."""
    connection.close()
    if connection.vendor != "sqlite":
        _run_client("pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction", file=file)
        return
    try:
        with closing(_opened(file)) as source, closing(_opened(connection.settings_dict["NAME"])) as target:
            _refuse_other(source)
            source.backup(target)
    except (OSError, sqlite3.Error) as exc:
        raise CommandError(f"{file} cannot be restored: {exc}") from exc


def _opened(file: str | Path) -> sqlite3.Connection:
    return sqlite3.connect(file, timeout=_BUSY_SECONDS)


def _refuse_other(source: sqlite3.Connection) -> None:
    """Raise sqlite3.Error for what is damaged, or no database of MemoryMark."""
    source.execute("SELECT 1 FROM analysis_run LIMIT 1")
    (found,) = source.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(found)


def _run_client(program: str, *options: str, file: Path | None = None) -> None:
    if shutil.which(program) is None:
        raise CommandError(
            f"{program} is not installed: it comes with PostgreSQL's client, of the server's version or later"
        )
    password, address = _address()
    command = [program, f"--dbname={address}", *options, *([str(file)] if file else [])]
    done = subprocess.run(command, env=os.environ | password, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"{program} failed: {done.stderr.strip()[-2000:]}")


def _address() -> tuple[dict[str, str], str]:
    from psycopg import conninfo, pq  # installed only where the database is PostgreSQL

    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()} - {"options"}
    values = {name: value for name, value in connection.get_connection_params().items() if name in known}
    password = values.pop("password", None)
    return {"PGPASSWORD": password} if password else {}, conninfo.make_conninfo(**values)
