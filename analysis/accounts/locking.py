"""A lock per person, for limits that are counted per person."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User


def person_lock(person: User) -> None:
    """Lock this person until the transaction ends: other lockers wait. Must be called within a transaction.

    On SQLite the transaction itself is the lock: it is IMMEDIATE. Rows that refer to the person are not locked.
    """
    list(get_user_model().objects.select_for_update(no_key=True).filter(pk=person.pk).values_list("pk"))
