"""How often a person may do what costs something: so many at once, then one each time the next is free.

Counted in the database, so that all processes and hosts count alike; Django's memory cache counts per process, and
its database cache reads, adds and writes, which loses what two processes do at once. Here one UPDATE counts: a row
says when the whole allowance will be free again (as in the generic cell rate algorithm), each request moves that
moment on by `period / number`, and is refused where it would come to lie more than a period ahead. The clock is the
server's: hosts whose clocks differ by a second count differently by a second. Retention removes rows that are free.

    settings.THROTTLES = {"create": Rate(60, 60.0)}   sixty at once; when they are spent, one a second

The API counts each request (`analysis.api.v1.throttles`); pages count what is started or exported, in the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from time import time
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import F, FloatField, Value
from django.db.models.functions import Greatest

from analysis.models import Throttle

if TYPE_CHECKING:
    from django.contrib.auth.models import User

CREATE, EXPORT = "create", "export"
_ROUNDING = 1e-6  # of sums of steps: what is left is a whole number
_WORDS = {CREATE: "runs were started", EXPORT: "exports were made"}


class RateLimited(Exception):
    """The allowance is used up for now. Nothing was counted."""

    def __init__(self, scope: str, wait_seconds: float) -> None:
        self.retry_after_seconds = ceil(wait_seconds)
        super().__init__(
            f"Too many {_WORDS[scope]} within a short time. Try again in {self.retry_after_seconds} seconds."
        )


def check_rate_limit(scope: str, person: User) -> None:
    """Count one more of this person's. Raises RateLimited."""
    if wait_seconds := seconds_to_wait(scope, counted_as(person)):
        raise RateLimited(scope, wait_seconds)


def counted_as(person: User) -> str:
    """As rows name a person: one, whichever way they show who they are."""
    return f"user {person.pk}"


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many more are free now, and in how many seconds all of them are."""

    number: int
    period_seconds: float
    left: int
    free_in_seconds: int


def allowance_of(scope: str, who: str) -> Allowance:
    """Tell what is left, without counting."""
    rate, now = settings.THROTTLES[scope], time()
    row = Throttle.objects.filter(scope=scope, who=who)
    free_at_seconds = max(row.values_list("free_at_seconds", flat=True).first() or now, now)
    step = rate.period_seconds / rate.number
    left = floor((now + rate.period_seconds - free_at_seconds) / step + _ROUNDING)
    return Allowance(rate.number, rate.period_seconds, max(left, 0), ceil(free_at_seconds - now))


def seconds_to_wait(scope: str, who: str) -> float:
    """0 and counted; or, refused and not counted, how long until the next one is free."""
    rate, now = settings.THROTTLES[scope], time()
    rows = Throttle.objects.filter(scope=scope, who=who)
    step = rate.period_seconds / rate.number
    latest = now + rate.period_seconds - step
    moved_on = Greatest(F("free_at_seconds"), Value(now, FloatField())) + Value(step, FloatField())
    with_room = rows.filter(free_at_seconds__lte=latest)
    while not with_room.update(free_at_seconds=moved_on):
        free_at = rows.values_list("free_at_seconds", flat=True).first()
        if free_at is None:
            first = Throttle(scope=scope, who=who, free_at_seconds=now)
            Throttle.objects.bulk_create([first], ignore_conflicts=True)
        elif free_at > latest:  # else its row was made between the two looks
            return float(free_at - latest)
    return 0.0
