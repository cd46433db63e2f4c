"""`python manage.py restore FILE`: puts a copy that `backup` wrote in place of the database."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from analysis.management.database_copy import copy_in


class Command(BaseCommand):
    """Restores the copy. Its version may be older: `migrate`, as `up` does, brings it up to date."""

    help = "Replace the database by the copy in FILE. Stop the portal and its workers first."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="replace a database that has tables")

    def handle(self, *args: Any, file: Path, force: bool, **options: Any) -> None:
        if not file.is_file():
            raise CommandError(f"{file} is no file")
        if not force and connection.introspection.table_names():
            raise CommandError("the database is not empty; --force replaces all of it")
        copy_in(file)
        self.stdout.write("Restored. Start with `manage.py up`, or run `manage.py migrate`.")
