"""The database: whether it is migrated, retries while it is unavailable, its clock, and locks."""

from __future__ import annotations

import fcntl
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar, cast

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.management.base import CommandError
from django.db import DatabaseError, InterfaceError, OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.sqlite3.base import DatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

DATABASE_AWAY = (OperationalError, InterfaceError)
"""Errors of a write when the server is away, the file locked or the disk full: a later retry may succeed."""

_RETRY_SECONDS = 2.0
_MIGRATION_LOCK = 5_001_2026  # an arbitrary number that no other program uses
T = TypeVar("T")


def refuse_unmigrated() -> None:
    """Raise CommandError, with the remedy, when the database cannot be reached or lacks tables."""
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as exc:  # away, or a damaged file
        raise CommandError(f"the database cannot be used: {exc}") from exc
    if missing:
        raise CommandError("the database is not set up; run: python manage.py migrate (`manage.py up` does it, too)")


@contextmanager
def migration_lock(database: BaseDatabaseWrapper, *, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock on migrating, which ends with its process; `on_wait` is called once if another one holds it."""
    if database.vendor == "postgresql":
        with closing(database.copy()) as own:  # a session of its own: the default one may be closed meanwhile
            with own.cursor() as cursor:
                cursor.execute("SELECT pg_try_advisory_lock(%s)", [_MIGRATION_LOCK])
                if not cursor.fetchone()[0]:
                    on_wait()
                    cursor.execute("SELECT pg_advisory_lock(%s)", [_MIGRATION_LOCK])
            yield
        return
    file = Path(database.settings_dict["NAME"])
    if not file.parent.is_dir() or cast(DatabaseWrapper, database).is_in_memory_db():
        yield
        return
    with file.with_name(f"{file.name}-migration-lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def person_lock(person: AbstractBaseUser) -> None:
    """Lock this person, in a transaction, until its end; rows that refer to the person stay free.

    On SQLite the transaction itself is the lock: it is IMMEDIATE.
    """
    list(get_user_model().objects.select_for_update(no_key=True).filter(pk=person.pk).values_list("pk"))


def database_now() -> datetime:
    """Return the time by the database's clock; SQLite uses this machine's."""
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT STATEMENT_TIMESTAMP()")
        now: datetime = cursor.fetchone()[0]
        return now


def is_locked(exc: Exception) -> bool:
    """Whether the error is SQLite's lock, which a process of this host holds, and not a server that is away."""
    return getattr(exc.__cause__, "sqlite_errorcode", None) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def connections_release() -> None:
    """Close connections after an error: a broken one would fail every later use, too."""
    for each in connections.all(initialized_only=True):
        each.close()


def write_with_retries(
    write: Callable[[], T], *, seconds: float, between: Callable[[], None], retry_seconds: float = _RETRY_SECONDS
) -> T:
    """Retry a repeatable write; after `seconds` raise its last error; `between` runs first, and may end it too."""
    until = time.monotonic() + seconds
    while True:
        try:
            return write()
        except DATABASE_AWAY:
            connections_release()
            if time.monotonic() >= until:
                raise
        between()
        time.sleep(retry_seconds)
