"""Applies the retention rules, batch by batch, within a time limit; and the housekeeping that needs no rule.

No transaction is long: each batch is one, and others write in the pauses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from axes.models import AccessAttempt
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django_q.models import Task

from analysis.audit.context import acting
from analysis.audit.record import record
from analysis.database import database_now
from analysis.models import AuditEntry, IdempotencyKey, NewsEvent, RetentionRule, ShareLink, Throttle
from analysis.runs.keeping import purge
from analysis.runs.keeping.purge import logs_trim, runs_expire, runs_purge

What = RetentionRule.What
EVERY = timedelta(days=1)
ACTOR = "retention"
_RUNS_AT_ONCE, _LOGS_AT_ONCE, _ROWS_AT_ONCE = 100, 50, 1_000
_PAUSE_SECONDS = 0.02
_TRACES = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of one rule; `count` rows were removed, or would be; None: the rule never removes any."""

    rule: RetentionRule
    count: int | None
    is_complete: bool = True


class _Clock:
    """The time limit of the work, and the sign of life that it gives meanwhile."""

    def __init__(self, seconds: float | None, beat: Callable[[], None]) -> None:
        self._until = None if seconds is None else time.monotonic() + seconds
        self._beat = beat

    def has_time(self) -> bool:
        self._beat()
        return self._until is None or time.monotonic() < self._until


def retain(
    *, seconds: float | None = None, beat: Callable[[], None] = lambda: None, only_due: bool = False
) -> list[Applied]:
    """Apply the rules; `only_due`: once a day, by the first worker to claim each. One that fails is due at once."""
    due = Q(applied_at=None) | Q(applied_at__lt=Now() - EVERY) if only_due else Q()
    clock, applied, failed = _Clock(seconds, beat), [], []
    for rule in RetentionRule.objects.filter(due):
        if RetentionRule.objects.filter(due, pk=rule.pk).update(applied_at=Now()):
            try:
                applied.append(_apply(rule, clock))
            except Exception as error:  # noqa: BLE001  (raised below)
                RetentionRule.objects.filter(pk=rule.pk).update(applied_at=None)
                failed.append(error)
            if rule.what == What.DELETED_RUNS:
                _tidy(clock)
    if failed:
        raise ExceptionGroup("retention rules failed", failed)
    return applied


def would_retain() -> list[Applied]:
    """Return how many rows each rule would remove now; for logs, how many runs' logs it would trim."""
    return [
        Applied(rule, None if rule.days is None else _due(rule, _before(rule)).order_by().count())
        for rule in RetentionRule.objects.all()
    ]


def _apply(rule: RetentionRule, clock: _Clock) -> Applied:
    if rule.days is None:
        return Applied(rule, None)
    before, count, is_complete = _before(rule), 0, False
    while clock.has_time():
        done, is_complete = _BATCHES.get(rule.what, _purge_rows)(rule, before)
        count += done
        if is_complete:
            break
        time.sleep(_PAUSE_SECONDS)
    if count:
        with acting(ACTOR):
            record("retention", target=rule, after={"done": count, "older_than": before, "is_complete": is_complete})
    RetentionRule.objects.filter(pk=rule.pk).update(applied_at=Now() if is_complete else None)
    return Applied(rule, count, is_complete)


def _before(rule: RetentionRule) -> datetime:
    return database_now() - timedelta(days=rule.days_applied or 0)


def _due(rule: RetentionRule, before: datetime) -> QuerySet[Any]:
    return _DUE[What(rule.what)](rule, before)


_DUE: Mapping[What, Callable[[RetentionRule, datetime], QuerySet[Any]]] = {
    What.DELETED_RUNS: lambda _, before: purge.runs_deleted(before),
    What.OLD_RUNS: lambda _, before: purge.runs_old(before),
    What.LOG_LINES: lambda rule, before: purge.runs_with_old_logs(rule.reached_at, before),
    What.AUDIT_ENTRIES: lambda _, before: AuditEntry.objects.filter(recorded_at__lt=before),
    What.IDEMPOTENCY_KEYS: lambda _, before: IdempotencyKey.objects.filter(created_at__lt=before),
    What.NEWS: lambda _, before: NewsEvent.objects.filter(created_at__lt=before),
    What.SHARE_LINKS: lambda _, before: ShareLink.objects.filter(created_at__lt=before),
}


def _purge_rows(rule: RetentionRule, before: datetime) -> tuple[int, bool]:
    """Delete the oldest rows; what belongs to them, as the deliveries of an event, goes with them."""
    rows = _due(rule, before)
    keys = list(rows.values_list("pk", flat=True)[:_ROWS_AT_ONCE])
    rows.model._default_manager.filter(pk__in=keys).delete()
    return len(keys), len(keys) < _ROWS_AT_ONCE


def _trim_logs(rule: RetentionRule, before: datetime) -> tuple[int, bool]:
    """Trim logs, and store how far this came, so that no run's log is read twice."""
    count, reached = logs_trim(after=rule.reached_at, before=before, limit=_LOGS_AT_ONCE)
    if reached is None:
        return count, True
    rule.reached_at = reached
    RetentionRule.objects.filter(pk=rule.pk).update(reached_at=reached)
    return count, False


def _batch(remove: Callable[..., int], before: datetime, limit: int) -> tuple[int, bool]:
    done = remove(before=before, limit=limit)
    return done, done < limit


_BATCHES: Mapping[str, Callable[[RetentionRule, datetime], tuple[int, bool]]] = {
    What.DELETED_RUNS: lambda _, before: _batch(runs_purge, before, _RUNS_AT_ONCE),
    What.OLD_RUNS: lambda _, before: _batch(runs_expire, before, _RUNS_AT_ONCE),
    What.LOG_LINES: _trim_logs,
    What.AUDIT_ENTRIES: lambda _, before: _batch(AuditEntry.objects.all().purge_before, before, _ROWS_AT_ONCE),
}
"""What removes a batch of each kind, where it is more than to delete the rows."""


def _tidy(clock: _Clock) -> None:
    now = database_now()
    _delete(Session.objects.filter(expire_date__lt=now), clock)
    _delete(AccessAttempt.objects.filter(attempt_time__lt=now - _TRACES), clock)
    _delete(Throttle.objects.filter(free_at_seconds__lt=(now - EVERY).timestamp()), clock)
    # only their keys are read: their arguments and results are pickles
    _delete(Task.objects.filter(success=False, stopped__lt=now - _TRACES), clock)
    with acting(ACTOR):  # the audit log has each device and host that is deleted
        while clock.has_time() and purge.reported_devices_purge(limit=_RUNS_AT_ONCE):
            time.sleep(_PAUSE_SECONDS)
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA analysis_limit=2000")
            cursor.execute("PRAGMA optimize")


def _delete(rows: QuerySet[Any], clock: _Clock) -> None:
    while clock.has_time():
        keys = list(rows.order_by().values_list("pk", flat=True)[:_ROWS_AT_ONCE])
        if not keys:
            return
        rows.model._default_manager.filter(pk__in=keys).only("pk").delete()
        time.sleep(_PAUSE_SECONDS)
