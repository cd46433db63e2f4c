"""`python manage.py backup FILE`: a copy of the database, which only this account can read."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from analysis.management.database_copy import copy_out


class Command(BaseCommand):
    """Writes the copy. Results and logs are in the database; the portal keeps no other file of a run that is over."""

    help = "Copy the database to FILE, also while the portal runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="overwrite FILE")

    def handle(self, *args: Any, file: Path, force: bool, **options: Any) -> None:
        if file.exists() and not force:
            raise CommandError(f"{file} exists; --force overwrites it")
        copy_out(file)
        self.stdout.write(f"{file}: {file.stat().st_size:,} bytes")
        self.stdout.write(f"Keep SECRET_KEY with it, or {settings.DATA_DIR / 'secret_key'}.")
