"""`python manage.py migrate`: Django's command, limited to one process at a time, with clear errors."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import DatabaseError, connections

from analysis.database import migration_lock


class Command(migrate.Command):
    def execute(self, *args: Any, **options: Any) -> Any:
        connection = connections[options["database"]]
        try:  # checks, which run before `handle`, also use the database
            with migration_lock(connection, on_wait=self._say_that_it_waits):
                return super().execute(*args, **options)
        except DatabaseError as exc:
            if connection.vendor != "sqlite":
                raise
            raise CommandError(f"the database cannot be used: {exc}") from exc

    def _say_that_it_waits(self) -> None:
        self.stdout.write("another process is migrating this database; waiting ...")
        self.stdout.flush()
