"""`python manage.py first_administrator`: creates an administrator if there is none, as `up` does."""

from __future__ import annotations

import os
import secrets
from typing import Any

from django.core.management.base import BaseCommand

from analysis.accounts.bootstrap import administrator_create_first


class Command(BaseCommand):
    """Creates the first administrator. For unattended installations: reads MEMORYMARK_ADMIN_PASSWORD."""

    help = "Create the first administrator, with the password in MEMORYMARK_ADMIN_PASSWORD or a random one."

    def handle(self, *args: Any, **options: Any) -> None:
        given = os.environ.get("MEMORYMARK_ADMIN_PASSWORD", "")
        password = given or secrets.token_urlsafe(12)
        if name := administrator_create_first(password=password):
            shown = "as given in MEMORYMARK_ADMIN_PASSWORD" if given else f"{password}   (shown only now)"
            self.stdout.write(f"first administrator: {name}   password: {shown}")
            self.stdout.flush()
