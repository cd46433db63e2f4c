"""`python manage.py migrate`: Django's, one process at a time, and a damaged SQLite file is a sentence."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import DatabaseError, connections

from analysis.database import migration_lock


class Command(migrate.Command):
    """Waits while another process migrates the same database, and then finds nothing left to do."""

    def execute(self, *args: Any, **options: Any) -> Any:
        connection = connections[options["database"]]
        try:  # checks, which come before `handle`, ask the database, too
            with migration_lock(connection, on_wait=self._say_that_it_waits):
                return super().execute(*args, **options)
        except DatabaseError as exc:
            if connection.vendor != "sqlite":
                raise
            raise CommandError(f"the database cannot be used: {exc}") from exc

    def _say_that_it_waits(self) -> None:
        self.stdout.write("another process migrates this database; waiting ...")
        self.stdout.flush()
