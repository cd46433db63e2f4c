"""queued -> running: how a worker gets its next run. `analysis.runs.queue.scheduling` decides the order."""

from __future__ import annotations

from collections import Counter
from uuid import uuid4

from django.db import IntegrityError, transaction
from django.db.models import Min
from django.db.models.functions import Now

from analysis.models import Attempt, Device, Run, State
from analysis.models.querysets import RunQuerySet
from analysis.runs.queue.scheduling import FairShareEntry, fair_share_order


def run_claim(*, device: Device, owner: str, run_id: int | None = None) -> Run | None:
    """Give the next run (or the one named) to this owner, with a new attempt, in one transaction.

    None: no waiting run may start here, or the device is busy, disabled, drained or in maintenance.
    """
    try:
        with transaction.atomic():
            ready = Device.objects.taking_runs().idle().filter(pk=device.pk).first()
            if ready is None:
                return None
            waiting = Run.objects.waiting_for(ready)
            named = None if run_id is None else waiting.filter(pk=run_id)
            run = _next(waiting, Run.objects.on_devices()) if named is None else _locked(named)
            if run is None or not _start(run, ready, owner[:250]):
                return None
    except IntegrityError:  # one_running_run_per_device: another claim was quicker
        return None
    return Run.objects.with_places().get(pk=run.pk)


def estimate_claim(*, owner: str) -> Run | None:
    """Claim the next estimate. It needs no device, so any worker of the default queue may take it."""
    with transaction.atomic():
        run = _next(Run.objects.waiting_estimates(), Run.objects.estimating())
        if run is None or not _start(run, None, owner[:250]):
            return None
    return Run.objects.with_places().get(pk=run.pk)


def _next(waiting: RunQuerySet, peers: RunQuerySet) -> Run | None:
    """Lock the next row. A row that another claim holds is skipped.

    `peers` are the runs that count for the order: measurements wait no longer because of estimates.
    """
    for turn in fair_share_order(_standings(waiting, peers)):
        run = _locked(waiting.filter(requested_by=turn.person, priority=turn.priority))
        if run is not None:
            return run
    return None


def _locked(waiting: RunQuerySet) -> Run | None:
    found = waiting.values_list("pk", flat=True).select_for_update(skip_locked=True, of=("self",)).first()
    return None if found is None else Run.objects.get(pk=found)


def _standings(waiting: RunQuerySet, peers: RunQuerySet) -> list[FairShareEntry]:
    """List each person and priority with a run that may start here, and how many runs of theirs are running."""
    groups = list(waiting.order_by().values_list("requested_by", "priority").annotate(Min("created_at")))
    if len(groups) < 2:
        return [FairShareEntry(*group) for group in groups]
    # counted here: grouped by the database, SQLite walks the whole history for it
    running = Counter(peers.running().order_by().values_list("requested_by", flat=True))
    last_started = peers.last_started({person for person, *_ in groups})
    return [
        FairShareEntry(person, priority, oldest, running[person], last_started.get(person))
        for person, priority, oldest in groups
    ]


def _start(run: Run, device: Device | None, owner: str) -> bool:
    number, spec = run.attempt + 1, run.spec
    if device is not None:  # it is executed with this device and, where no price was requested, the device's
        spec = {**spec, "device": device.device}
        if run.uses_device_price and device.price_per_hour_usd is not None:
            spec["price_per_hour_usd"] = device.price_per_hour_usd
    still_waiting = Run.objects.queued().filter(pk=run.pk, cancel_requested=False)
    started = still_waiting.update(
        state=State.RUNNING,
        device=device,
        device_name=device.name if device else run.device_name,
        spec=spec,
        attempt=number,
        token=uuid4().hex,
        owner=owner,
        phase="",
        started_at=Now(),
        heartbeat_at=Now(),
        suspect_at=None,
    )
    if started:
        Attempt.objects.create(run_id=run.pk, number=number, device=device, owner=owner, started_at=Now())
    return bool(started)
