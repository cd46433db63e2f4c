"""`python manage.py first_administrator`: creates an administrator if there is none, as `up` does."""

from __future__ import annotations

import os
import secrets
from itertools import count
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand
from django.db import IntegrityError, transaction

FIRST_NAME = "admin"


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


def administrator_create_first(*, password: str) -> str | None:
    """Create a superuser if there is none, and return its name; an ordinary user called `admin` is not promoted."""
    users = get_user_model().objects
    if users.filter(is_superuser=True).exists():
        return None
    names = (FIRST_NAME if number == 1 else f"{FIRST_NAME}{number}" for number in count(1))
    name = next(name for name in names if not users.filter(username=name).exists())
    try:
        with transaction.atomic():
            users.create_superuser(username=name, email="", password=password)
    except IntegrityError:  # another process, started at the same moment, was quicker
        if users.filter(is_superuser=True).exists():
            return None
        raise
    return name
