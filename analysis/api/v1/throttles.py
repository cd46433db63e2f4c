"""How often a person may do what costs something: so many at once, then one each time the next is free.

Counted in the database, so that all processes and hosts count alike; Django's memory cache counts per process, and
its database cache reads, adds and writes, which loses what two processes do at once. Here one UPDATE counts: a row
says when the whole allowance will be free again (as in the generic cell rate algorithm), each request moves that
moment on by `period / number`, and is refused where it would come to lie more than a period ahead. The clock is the
server's: hosts whose clocks differ by a second count differently by a second. Retention removes rows that are free.

    settings.THROTTLES = {"create": Rate(60, 60.0)}   sixty at once; when they are spent, one a second
"""

from __future__ import annotations

from time import time
from typing import Any

from django.conf import settings
from django.db.models import F, FloatField, Value
from django.db.models.functions import Greatest
from rest_framework.permissions import SAFE_METHODS
from rest_framework.throttling import BaseThrottle

from analysis.access.addresses import counted_address
from analysis.api.tables import Throttle


class ScopeThrottle(BaseThrottle):
    """Of a view: whatever changes something counts as its `throttle_scope`, and reading is free unless it has a
    `read_throttle_scope`."""

    wait_seconds = 0.0

    def allow_request(self, request: Any, view: Any) -> bool:
        if request.method in SAFE_METHODS:
            scope = getattr(view, "read_throttle_scope", None)
        else:
            scope = getattr(view, "throttle_scope", None) or "change"
        if scope is not None:
            self.wait_seconds = seconds_to_wait(scope, self._who(request))
        return self.wait_seconds == 0

    def wait(self) -> float:
        return self.wait_seconds

    def _who(self, request: Any) -> str:
        """A person, with whichever token; or an address."""
        if request.user and request.user.is_authenticated:
            return f"user {request.user.pk}"
        return f"address {counted_address(request)}"


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
