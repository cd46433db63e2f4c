"""Whether this portal can do its work: the database answers and takes writes, a worker lives, the queue moves.

Nothing here writes but the probe of a write. Times are compared by the database's clock: the hosts' may differ.
"""

from __future__ import annotations

import logging
import shutil
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from analysis.models import Attempt, Device, Run, Throttle
from analysis.models.querysets import SEEN_LATELY
from analysis.runs.queue.claim import plan_for
from engine.text.units import MIB, format_bytes

logger = logging.getLogger(__name__)

WAITS_TOO_LONG = timedelta(seconds=120)
"""Four times what the slowest wake-up takes: a device that is free looks at the queue every 30 s."""

_MOST_IDLE_DEVICES = 100  # each costs a query; only devices that an old waiting run could use are checked


@dataclass(frozen=True, slots=True)
class HealthCheck:
    ok: bool
    message: str


WRITE_EVERY_SECONDS = 5.0
FREE_BYTES_MIN = 32 * MIB
"""Below it SQLite still writes for a while into space that it has, and then nothing can be stored."""

_UNKNOWN = HealthCheck(False, "Not known: the database does not answer.")


@dataclass(frozen=True, slots=True)
class Readiness:
    checks: dict[str, HealthCheck]

    @property
    def is_ready(self) -> bool:
        return all(check.ok for check in self.checks.values())

    def to_dict(self) -> dict[str, Any]:
        checks = {name: asdict(check) for name, check in self.checks.items()}
        return {"status": "ready" if self.is_ready else "not ready", "checks": checks}


@dataclass(frozen=True, slots=True)
class FleetAlarm:
    """No worker lives. `since` is the last sign of life of any; None: there never was one."""

    since: datetime | None


def readiness() -> Readiness:
    """Check everything. A database that is away is an answer too, and raises nothing."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return Readiness({"database": _database(), "disk": _disk(), "worker": _worker(), "queue": _queue()})
    except DatabaseError as exc:
        logger.warning("not ready, the database does not answer: %s", exc)
        away = HealthCheck(False, "The database does not answer; the web server's log says why.")
        return Readiness({"database": away, "disk": _disk(), "worker": _UNKNOWN, "queue": _UNKNOWN})


def free_bytes() -> int | None:
    try:
        return shutil.disk_usage(settings.DATA_DIR).free
    except OSError as exc:
        logger.warning("the free space of the data folder cannot be read: %s", exc)
        return None


def alarm_of_dead_workers() -> FleetAlarm | None:
    """Return since when no worker lives, by one query; None while some enabled device's worker does."""
    lives = Count("pk", filter=Q(last_seen_at__gte=Now() - SEEN_LATELY))
    seen = Device.objects.enabled().aggregate(last=Max("last_seen_at"), living=lives)
    return None if seen["living"] else FleetAlarm(seen["last"])


def run_left_lying() -> int | None:
    """Find a run that waits too long although a device for it is alive and was idle meanwhile."""
    old = Run.objects.on_devices().queued().filter(cancel_requested=False, created_at__lt=Now() - WAITS_TOO_LONG)
    ended_lately = Attempt.objects.filter(device=OuterRef("pk"), ended_at__gte=Now() - WAITS_TOO_LONG)
    idle = Device.objects.taking_runs().seen_lately().idle().unheld().filter(~Exists(ended_lately))
    for device in idle.filter(_is_requested(old))[:_MOST_IDLE_DEVICES]:
        waiting = Run.objects.waiting_for(device).filter(created_at__lt=Now() - WAITS_TOO_LONG)
        oldest = waiting.order_by("-device_count", "created_at", "id").values_list("pk", "device_count").first()
        if oldest is None:
            continue
        run_id, device_count = oldest
        if device_count == 1:
            return run_id
        starts, _ = plan_for(device)  # the device may be reserved, or too few of its host are free
        if starts is not None and waiting.filter(pk=starts.run_id).exists():
            return starts.run_id
    return None


def _is_requested(runs: QuerySet[Run]) -> Q:
    by_kind = runs.filter(requested_device=None).values("requested_kind")
    return Q(pk__in=runs.values("requested_device")) | Q(kind__in=by_kind)


def estimate_left_lying() -> int | None:
    """Find an estimate that waits too long although none is running, and none ended meanwhile."""
    busy = Attempt.objects.filter(device=None).filter(Q(ended_at=None) | Q(ended_at__gte=Now() - WAITS_TOO_LONG))
    old = Run.objects.waiting_estimates().filter(created_at__lt=Now() - WAITS_TOO_LONG)
    return old.filter(~Exists(busy)).values_list("pk", flat=True).first()


def run_waiting_for_held_device() -> tuple[int, Device] | None:
    """Find a run that waits for a device, held by another program, and this device."""
    waiting = Run.objects.on_devices().queued().filter(cancel_requested=False)
    held = Device.objects.taking_runs().seen_lately().idle().exclude(held_process="").filter(_is_requested(waiting))
    for device in held.select_related("host").defer("calibration")[:_MOST_IDLE_DEVICES]:
        run_id = Run.objects.waiting_for(device).values_list("pk", flat=True).first()
        if run_id is not None:
            return run_id, device
    return None


def _database() -> HealthCheck:
    try:
        _probe_a_write()
    except DatabaseError as exc:
        logger.warning("not ready, the database takes no write: %s", exc)
        return HealthCheck(False, "The database answers but takes no write; the web server's log says why.")
    return HealthCheck(True, "The database answers and takes writes.")


def _probe_a_write() -> None:
    """Write and commit a row without meaning, at most every few seconds, as everybody may call this."""
    now = time.time()
    rows = Throttle.objects.filter(scope="readyz", who="")
    if not rows.filter(free_at_seconds__range=(now, now + WRITE_EVERY_SECONDS)).exists():
        Throttle.objects.update_or_create(
            scope="readyz", who="", defaults={"free_at_seconds": now + WRITE_EVERY_SECONDS}
        )


def _disk() -> HealthCheck:
    free = free_bytes()
    if free is None:
        return HealthCheck(False, "The data folder cannot be read; the web server's log says why.")
    if free < FREE_BYTES_MIN:
        return HealthCheck(False, f"The data folder has {format_bytes(free)} free: results may soon find no room.")
    return HealthCheck(True, "The data folder has room.")


def _worker() -> HealthCheck:
    living = Device.objects.enabled().seen_lately().count()
    if living:
        return HealthCheck(True, f"Devices with a live worker: {living}.")
    seconds = SEEN_LATELY.total_seconds()
    return HealthCheck(
        False, f"No enabled device's worker gave a sign of life in the last {seconds:.0f} s: nothing will run."
    )


def _queue() -> HealthCheck:
    """Say what waits too long. Everybody may read it: it names a holder's process, never its command line."""
    seconds = WAITS_TOO_LONG.total_seconds()
    if estimate_left_lying() is not None:
        message = f"An estimate has waited more than {seconds:.0f} s, and none is under way."
        return HealthCheck(False, f"{message} Start a worker without a device: python manage.py worker.")
    if run_left_lying() is not None:
        message = f"A run has waited more than {seconds:.0f} s, although a device that may take it lives and is idle."
        return HealthCheck(False, message)
    if (held := run_waiting_for_held_device()) is None:
        return HealthCheck(True, "No run waits for a device that could take it.")
    run_id, device = held
    since = f" since {device.held_since:%Y-%m-%d %H:%M} UTC" if device.held_since else ""
    what = f"Run {run_id} waits for {device.device} of {device.host}, which {device.held_process} holds{since}."
    return HealthCheck(True, what)
