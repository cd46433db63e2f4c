"""Writes the made-up history past the ORM: COPY on PostgreSQL, executemany on SQLite, indexes made afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from benchmarks.history_rows import History

ROWS_AT_ONCE = 5_000


def fill(first: int, last: int) -> dict[str, float]:
    """Runs `first` to `last` with all that belongs to them; the seconds that each table took, and the indexes."""
    from django.db import connection

    seconds: dict[str, float] = {}
    with _bulk(connection), _without_indexes(connection) as made:
        for model, rows in History(first, last).tables():
            started = time.monotonic()
            _write(connection, model, rows)
            seconds[model._meta.db_table] = round(time.monotonic() - started, 1)
    started = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return seconds | {"indexes": made[0], "analyze": round(time.monotonic() - started, 1)}


def _write(connection: Any, model: Any, rows: Iterable[tuple[Any, ...]]) -> None:
    columns = [field.column for field in model._meta.local_concrete_fields]
    names, table = ", ".join(f'"{name}"' for name in columns), model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f'COPY "{table}" ({names}) FROM STDIN') as copy:
                lines = ("\t".join(map(_copy_value, row)) + "\n" for row in rows)
                while chunk := list(islice(lines, ROWS_AT_ONCE)):
                    copy.write("".join(chunk))
            return
        marks = ", ".join("?" * len(columns))
        connection.connection.executemany(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', rows)
        connection.connection.commit()


def _copy_value(value: Any) -> str:
    if value is None:
        return "\\N"
    if not isinstance(value, str):
        return str(value)
    return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n") if "\\" in value else value


@contextmanager
def _bulk(connection: Any) -> Iterator[None]:
    """No check of foreign keys row by row, and nothing flushed in between: these rows can be made again."""
    before, after = {
        "postgresql": (
            [
                "SET session_replication_role = replica",
                "SET synchronous_commit = off",
                "SET maintenance_work_mem = '1GB'",
            ],
            ["RESET session_replication_role", "RESET synchronous_commit"],
        ),
        "sqlite": (
            [
                "PRAGMA foreign_keys = OFF",
                "PRAGMA journal_mode = OFF",
                "PRAGMA synchronous = OFF",
                "PRAGMA cache_size = -1000000",
            ],
            ["PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", "PRAGMA cache_size = -16000"],
        ),
    }[connection.vendor]
    with connection.cursor() as cursor:
        for line in before:
            cursor.execute(line)
        yield
        for line in after:
            cursor.execute(line)


@contextmanager
def _without_indexes(connection: Any) -> Iterator[list[float]]:
    """The portal's own indexes, dropped while rows come in and made again from their definitions."""
    listed = {
        "postgresql": "SELECT indexname, indexdef FROM pg_indexes WHERE tablename LIKE 'analysis_%' "
        "AND indexname NOT IN (SELECT conname FROM pg_constraint)",
        "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name LIKE 'analysis_%' "
        "AND sql IS NOT NULL",
    }[connection.vendor]
    made: list[float] = []
    with connection.cursor() as cursor:
        cursor.execute(listed)
        indexes = cursor.fetchall()
        for name, _ in indexes:
            cursor.execute(f'DROP INDEX "{name}"')
        yield made
        started = time.monotonic()
        for _, definition in indexes:
            cursor.execute(definition)
        if connection.vendor == "postgresql":
            for table in ("run", "attempt", "measurement", "run_tags", "runsetting"):
                cursor.execute(
                    f"SELECT setval(pg_get_serial_sequence('analysis_{table}', 'id'), max(id)) FROM analysis_{table}"
                )
    made.append(round(time.monotonic() - started, 1))
