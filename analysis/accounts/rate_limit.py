"""Rate limits per person of costly actions: a burst, then a steady rate (generic cell rate algorithm).

Counted in the database, so that all processes and hosts share the limits; Django's memory cache counts per process,
and its database cache reads, adds and writes, which loses concurrent requests. Here one UPDATE counts: a row stores
when the whole burst will be available again, each request moves that moment by `period / number`, and is refused where
it would be more than a period ahead. The clock is the server's: hosts whose clocks differ by a second count with that
difference. Retention removes rows that are no longer needed.

    settings.THROTTLES = {"create": Rate(60, 60.0)}   a burst of sixty, then one a second

The API counts each request (`analysis.api.v1.base.throttles`); pages count starts and exports, in the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from time import time

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import F, FloatField, Value
from django.db.models.functions import Greatest

from analysis.models import Throttle

CREATE, EXPORT = "create", "export"
_ROUNDING = 1e-6  # error of a sum of steps: the number of actions left is whole
_ACTIONS = {CREATE: "runs or links were created", EXPORT: "exports were made"}


class RateLimited(Exception):
    """The rate limit is exceeded for now. The request was not counted."""

    def __init__(self, scope: str, wait_seconds: float) -> None:
        self.retry_after_seconds = ceil(wait_seconds)
        super().__init__(
            f"Too many {_ACTIONS[scope]} within a short time. Try again in {self.retry_after_seconds} seconds."
        )


def check_rate_limit(scope: str, person: User) -> None:
    """Count one action of this person. Raises RateLimited."""
    if wait_seconds := seconds_to_wait(scope, counted_as(person)):
        raise RateLimited(scope, wait_seconds)


def counted_as(person: User) -> str:
    """Return the key of a person in the rows: the same for every way of authentication."""
    return f"user {person.pk}"


@dataclass(frozen=True, slots=True)
class Allowance:
    """The remaining number of actions, and the seconds until all are available again."""

    number: int
    period_seconds: float
    left: int
    free_in_seconds: int


def allowance_of(scope: str, who: str) -> Allowance:
    rate, now = settings.THROTTLES[scope], time()
    row = Throttle.objects.filter(scope=scope, who=who)
    free_at_seconds = max(row.values_list("free_at_seconds", flat=True).first() or now, now)
    step = rate.period_seconds / rate.number
    left = floor((now + rate.period_seconds - free_at_seconds) / step + _ROUNDING)
    return Allowance(rate.number, rate.period_seconds, max(left, 0), ceil(free_at_seconds - now))


def seconds_to_wait(scope: str, who: str) -> float:
    """Count one action and return 0; or return how long to wait, without counting it."""
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
        elif free_at > latest:  # otherwise another request has just created the row
            return float(free_at - latest)
    return 0.0
