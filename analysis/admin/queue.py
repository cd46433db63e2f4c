"""The queue and the workers, as far as the database shows: waiting runs, live workers, failed tasks.

Django-q2's own admin pages unpickle the content of their tables. Here nothing is unpickled: only the age of a message
is read, and the first text of a failure.
"""

from __future__ import annotations

import base64
import binascii
import math
import pickletools

import django_q.admin  # noqa: F401  (registers the models that are unregistered below)
from django.conf import settings
from django.contrib import admin
from django.db.models import Min, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django_q.models import Failure, OrmQ, Schedule, Success, Task

from analysis.database import database_now
from analysis.models import Device, Run
from analysis.models.querysets import SEEN_LATELY
from analysis.presentation.device_cards import describe_hold
from analysis.presentation.labels import model_name
from analysis.presentation.run_state import describe_phase
from analysis.runs.queue.forecast import queue_positions

FAILURES_SHOWN, WAITING_SHOWN = 20, 50
_STRINGS = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")

for _model in (Failure, OrmQ, Schedule, Success):
    admin.site.unregister(_model)


def queue_page(request: HttpRequest) -> HttpResponse:
    failed = Task.objects.filter(success=False).annotate(stored=Cast("result", TextField())).order_by("-stopped")
    waiting, more = _waiting()
    devices = Device.objects.select_related("host").defer("calibration").with_activity()
    now = database_now()
    # `lock` is when a message was sent; of one that a worker has taken, when another worker may take it
    oldest = OrmQ.objects.filter(key=settings.Q_CLUSTER["name"], lock__lte=now).aggregate(sent=Min("lock"))["sent"]
    context = {
        **admin.site.each_context(request),
        "title": "Queue and workers",
        "waiting": waiting,
        "more_waiting": more,
        "is_message_waiting": oldest is not None and now - oldest > SEEN_LATELY,
        "devices": [(device, "" if device.running_id else describe_hold(device)) for device in devices],
        # a run that fails is not a failed task: these are errors of the portal
        "failures": [
            row | {"message": first_text(row["stored"])}
            for row in failed.values("func", "cluster", "stopped", "stored")[:FAILURES_SHOWN]
        ],
        "queue_without_device": settings.Q_CLUSTER["name"],
        "now": now,
    }
    return render(request, "admin/queue.html", context)


def _waiting() -> tuple[list[tuple[Run, str, str]], bool]:
    queue = Run.objects.queued().filter(cancel_requested=False)
    runs = list(queue.with_places().defer("result").order_by("-priority", "created_at", "id")[: WAITING_SHOWN + 1])
    has_more, runs = len(runs) > WAITING_SHOWN, runs[:WAITING_SHOWN]
    turns = queue_positions(runs)
    places = {run_id: turn.position for run_id, turn in turns.items() if turn.position is not None}
    runs.sort(key=lambda run: places.get(run.pk, math.inf))
    return [(run, model_name(run.model), describe_phase(run, turns.get(run.pk))) for run in runs], has_more


def first_text(stored: str | None) -> str:
    """PURE: find the first text in a pickle by its bytes, without creating objects or running code."""
    try:
        steps = pickletools.genops(base64.b64decode(stored or "", validate=True))
        return next((str(value) for code, value, _ in steps if code.name in _STRINGS), "")
    except (binascii.Error, ValueError, IndexError):
        return ""
