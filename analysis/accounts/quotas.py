"""Quotas: how much of the queue a person may take, and the refusal, with the limit and when it allows more.

Measurements and estimates count as waiting; only measurements count per day, because an estimate holds no device.
For a GPU manager only their own quota holds, not those of their groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from analysis.database import person_lock
from analysis.models import Device, Quota, Run
from analysis.permissions import may_manage
from engine.errors import SpecError

DAY = timedelta(hours=24)
_WAITING_RETRY_SECONDS = 60


class QuotaExceededError(SpecError):
    """The request is valid but exceeds a quota now. It may succeed later."""

    code = "quota"

    def __init__(self, quota: str, message: str, *, frees_at: datetime | None, retry_after_seconds: int) -> None:
        Exception.__init__(self, message)
        self.field = "quota"
        self.quota = quota
        self.frees_at = frees_at
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """The limits of one person; None: no limit."""

    runs_waiting_max: int | None = None
    runs_per_day_max: int | None = None
    time_budget_max_seconds: float | None = None
    device_ids: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Use:
    runs_waiting: int
    runs_today: int


def limits_of(person: User) -> QuotaLimits:
    """Return the person's own quota, or the highest value of each field among those of their groups."""
    rows = list(Quota.objects.filter(Q(user=person) | Q(group__user=person)).prefetch_related("devices"))
    own = [row for row in rows if row.user_id == person.pk]
    if not rows or (not own and may_manage(person)):
        return QuotaLimits()
    counted = own or rows
    devices = [frozenset(device.pk for device in row.devices.all()) for row in counted]
    return QuotaLimits(
        runs_waiting_max=_highest([row.runs_waiting_max for row in counted]),
        runs_per_day_max=_highest([row.runs_per_day_max for row in counted]),
        time_budget_max_seconds=_highest([row.time_budget_max_seconds for row in counted]),
        device_ids=frozenset().union(*devices) if all(devices) else None,
    )


def use_of(person: User) -> Use:
    return Use(_waiting(person).count(), _measured_lately(person).count())


def enforce_quota(run: Run) -> None:
    """Refuse a new run that exceeds a limit of its person. Must be called in the transaction that stores the run.

    Raises QuotaExceededError where a later request may succeed, and SpecError where none can.
    """
    person = run.requested_by
    if person is None or (limits := limits_of(person)) == QuotaLimits():
        return
    longest = limits.time_budget_max_seconds
    if longest is not None and run.needs_device and run.spec["time_budget_seconds"] > longest:
        raise SpecError("time_budget_seconds", f"your quota allows at most {longest:,.0f} seconds")
    allowed = limits.device_ids
    if allowed is not None and run.requested_device_id is not None and run.requested_device_id not in allowed:
        names = ", ".join(map(str, Device.objects.filter(pk__in=allowed).select_related("host")))
        raise SpecError("device", f"your quota allows only: {names}")
    person_lock(person)
    most = limits.runs_waiting_max
    if most is not None and _waiting(person).count() >= most:
        raise _too_many_wait(person, most)
    most = limits.runs_per_day_max
    if most is not None and run.needs_device and _measured_lately(person).count() >= most:
        raise _too_many_today(person, most)


def _too_many_wait(person: User, most: int) -> QuotaExceededError:
    """Return the refusal, without a time: how soon more runs may wait depends on the queue."""
    first = _waiting(person).order_by("-priority", "created_at", "id").values_list("pk", flat=True).first()
    frees = (
        f"You can start another when one of them starts; run {first} is next."
        if first
        else "A GPU manager can raise it."
    )
    message = f"Your quota of runs waiting is used up: {_of(most)}. {frees}"
    return QuotaExceededError("runs_waiting_max", message, frees_at=None, retry_after_seconds=_WAITING_RETRY_SECONDS)


def _too_many_today(person: User, most: int) -> QuotaExceededError:
    newest = _measured_lately(person).order_by("-created_at", "-id").values_list("pk", "created_at")
    last = list(newest[max(0, most - 1) : most])
    if not last:
        message = "Your quota allows no measurements. An estimate needs no device."
        day = int(DAY.total_seconds())
        return QuotaExceededError("runs_per_day_max", message, frees_at=None, retry_after_seconds=day)
    (oldest, created_at) = last[0]
    frees_at = created_at + DAY
    wait_seconds = max(1, ceil((frees_at - timezone.now()).total_seconds()))
    message = (
        f"Your quota of measurements in 24 hours is used up: {_of(most)}. "
        f"The next is possible at {frees_at:%Y-%m-%d %H:%M} UTC, when your run {oldest} is 24 hours old."
    )
    return QuotaExceededError("runs_per_day_max", message, frees_at=frees_at, retry_after_seconds=wait_seconds)


def _of(most: int) -> str:
    return f"{most} of {most}" if most else "it is 0"


def _waiting(person: User) -> Any:
    return Run.objects.queued().filter(requested_by=person, cancel_requested=False)


def _measured_lately(person: User) -> Any:
    """Select the runs that count. Deleted ones count too: deleting a run must not allow another."""
    return Run.all_runs.on_devices().filter(requested_by=person, created_at__gt=timezone.now() - DAY).order_by()


def _highest(values: list[Any]) -> Any:
    """Return the highest value; None, if one of them sets no limit."""
    return None if None in values else max(values)
