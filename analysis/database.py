"""Whether the database is ready for this code."""

from __future__ import annotations

from django.core.management.base import CommandError
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor


def refuse_unmigrated() -> None:
    """Raise CommandError, with the remedy, when the database cannot be reached or lacks tables."""
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except OperationalError as exc:
        raise CommandError(f"the database cannot be used: {exc}") from exc
    if missing:
        raise CommandError("the database is not set up; run: python manage.py migrate (`manage.py up` does it, too)")
