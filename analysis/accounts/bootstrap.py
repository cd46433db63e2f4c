"""The first administrator: created once, when there is none, so that a new installation can be used."""

from __future__ import annotations

from itertools import count

from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction

FIRST_NAME = "admin"


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
