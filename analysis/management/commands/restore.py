"""`python manage.py restore FILE`: puts a copy that `backup` wrote in place of the database."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from analysis.management.database_copy import copy_in
from analysis.models import Device
from analysis.models.querysets import SEEN_LATELY


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
        tables = connection.introspection.table_names()
        if tables and not force:
            raise CommandError("the database is not empty; --force replaces all of it")
        living = Device.objects.seen_lately() if Device._meta.db_table in tables else Device.objects.none()
        if device := living.first():
            lately = f"was alive within the last {SEEN_LATELY.total_seconds():.0f} s"
            raise CommandError(f"the worker of {device.name} {lately}: stop everything, and wait as long")
        copy_in(file)
        self.stdout.write("Restored. Start with `manage.py up`, or run `manage.py migrate`.")
