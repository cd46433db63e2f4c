"""`python manage.py first_administrator`: makes one where there is none, as `up` does; else it does nothing."""

from __future__ import annotations

import os
import secrets
from typing import Any

from django.core.management.base import BaseCommand

from analysis.accounts.bootstrap import administrator_create_first


class Command(BaseCommand):
    """For installations that nobody sits in front of: the password comes from MEMORYMARK_ADMIN_PASSWORD."""

    help = "Make the first administrator, with the password of MEMORYMARK_ADMIN_PASSWORD or a random one that is shown."

    def handle(self, *args: Any, **options: Any) -> None:
        given = os.environ.get("MEMORYMARK_ADMIN_PASSWORD", "")
        password = given or secrets.token_urlsafe(12)
        if name := administrator_create_first(password=password):
            shown = "as given in MEMORYMARK_ADMIN_PASSWORD" if given else f"{password}   (shown only now)"
            self.stdout.write(f"first administrator: {name}   password: {shown}")
            self.stdout.flush()
