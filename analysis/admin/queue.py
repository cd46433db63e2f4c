"""The queue and the workers, as far as the database shows: waiting messages, live workers, failed tasks.

Django-q2's own admin pages unpickle the content of their tables. Here nothing is unpickled: only the queue and age of
a message are read, and the first text of a failure.
"""

from __future__ import annotations

import base64
import binascii
import pickletools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import django_q.admin  # noqa: F401  (registers the models that are unregistered below)
from django.conf import settings
from django.contrib import admin
from django.db.models import Count, Min, Q, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django_q.models import Failure, OrmQ, Schedule, Success, Task

from analysis.database import database_now
from analysis.models import Device, Run
from analysis.models.querysets import SEEN_LATELY

FAILURES_SHOWN = 20
_STRINGS = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")

for _model in (Failure, OrmQ, Schedule, Success):
    admin.site.unregister(_model)


@dataclass(frozen=True, slots=True)
class QueueLine:
    """A device and its queue. `oldest_at`: when the oldest waiting message was sent; None: none waits.

    The worker without a device has no row to give a sign of life in: it is silent where its messages wait for long.
    """

    device: Device | None
    name: str
    is_silent: bool
    running_id: int | None
    message_count: int
    oldest_at: datetime | None


@dataclass(frozen=True, slots=True)
class Failed:
    """A task that raised an error of the portal; a run that fails is not a failed task."""

    name: str
    queue: str
    ended_at: datetime
    message: str


def queue_page(request: HttpRequest) -> HttpResponse:
    """Show the queue. The admin site, which wraps this view, checks the permission."""
    failed = Task.objects.filter(success=False).annotate(stored=Cast("result", TextField())).order_by("-stopped")
    context = {
        **admin.site.each_context(request),
        "title": "Queue and workers",
        "lines": list(_lines()),
        "failures": [
            Failed(row["func"], row["cluster"] or settings.Q_CLUSTER["name"], row["stopped"], first_text(row["stored"]))
            for row in failed.values("func", "cluster", "stopped", "stored")[:FAILURES_SHOWN]
        ],
        "now": database_now(),
        "silent_seconds": int(SEEN_LATELY.total_seconds()),
    }
    return render(request, "admin/queue.html", context)


def _lines() -> Iterator[QueueLine]:
    now = database_now()
    # `lock` is when a message was sent; of one that a worker has taken, when another worker may take it
    oldest = Min("lock", filter=Q(lock__lte=now))
    held = {row["key"]: row for row in OrmQ.objects.values("key").annotate(count=Count("pk"), oldest=oldest)}
    running = dict(Run.objects.holding().filter(device__isnull=False).values_list("device", "pk"))
    default = held.get(settings.Q_CLUSTER["name"], {})
    waits_since = default.get("oldest")
    is_silent = waits_since is not None and now - waits_since > SEEN_LATELY
    yield QueueLine(None, "work without a device", is_silent, None, default.get("count", 0), waits_since)
    for device in Device.objects.select_related("host").defer("calibration").order_by("host__name", "device"):
        messages = held.get(device.queue_name, {})
        silent = device.last_seen_at is None or now - device.last_seen_at > SEEN_LATELY
        counts = messages.get("count", 0), messages.get("oldest")
        yield QueueLine(device, str(device), silent, device.held_for_id or running.get(device.pk), *counts)


def first_text(stored: str | None) -> str:
    """PURE: find the first text in a pickle by its bytes, without creating objects or running code."""
    try:
        steps = pickletools.genops(base64.b64decode(stored or "", validate=True))
        return next((str(value) for code, value, _ in steps if code.name in _STRINGS), "")
    except (binascii.Error, ValueError, IndexError):
        return ""
