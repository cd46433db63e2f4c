"""What is counted per person needs one writer per person at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def person_lock(person: User) -> None:
    """Until the transaction ends, whoever else locks this person waits. To be called within one.

    On SQLite the transaction itself is the lock: it is IMMEDIATE. Rows that point at the person are not held up.
    """
    list(get_user_model().objects.select_for_update(no_key=True).filter(pk=person.pk).values_list("pk"))
