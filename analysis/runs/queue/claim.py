"""queued -> running: how a worker gets its next run. `analysis.runs.queue.scheduling` decides the order.

A run of one device is claimed at once. A run of several is claimed by the worker of the first of them, once that holds
the locks of all: between the two, `claim_next` has only said which they are. All devices of a set are locked in the
order of their UUIDs: no two workers wait for each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.db import IntegrityError, transaction
from django.db.models import Min
from django.db.models.functions import Now

from analysis.models import Attempt, Device, Run, State
from analysis.models.querysets import RunQuerySet
from analysis.runs.kinds import rules_of
from analysis.runs.queue.create import worker_wake
from analysis.runs.queue.queue_now import index_of, queue_now
from analysis.runs.queue.reservation import Seat, starts
from analysis.runs.queue.scheduling import by_turn, group_of, in_order, turn

_ROW: dict[str, Any] = {"of": ("self",), "no_key": True}
"""A claim locks the rows of its devices: of two claims of one device, the second sees the first one's changes."""


@dataclass(frozen=True, slots=True)
class DeviceSet:
    """A run that starts now, with its devices in lock order: the worker of the first starts it."""

    run_id: int
    devices: tuple[Device, ...]


def run_claim(*, device: Device, owner: str, run_id: int | None = None) -> Run | None:
    """Give a device's next run (or the one named) to this owner, with a new attempt; None: none may start here."""
    found = claim_next(device=device, owner=owner, run_id=run_id)
    return found if isinstance(found, Run) else None


def claim_next(*, device: Device, owner: str, run_id: int | None = None) -> Run | DeviceSet | None:
    """Claim as `run_claim` does; for a run of several devices return the devices, for `set_claim`."""
    try:
        with transaction.atomic():
            ready = Device.objects.taking_runs().idle().filter(pk=device.pk).select_for_update(**_ROW).first()
            if ready is None:
                return None
            waiting = Run.objects.waiting_for(ready)
            named = None if run_id is None else _locked(waiting.filter(pk=run_id, device_count=1))
            found = _next(waiting, Run.objects.on_devices(), ready) if run_id is None else named
            if found is None or isinstance(found, DeviceSet):
                return found
            if not _start(found, [ready], owner[:250]):
                return None
    except IntegrityError:  # one_running_run_per_device: another claim was quicker
        return None
    return Run.objects.with_places().get(pk=found.pk)


def set_claim(*, wanted: DeviceSet, owner: str) -> Run | None:
    """Give a run of several devices to this owner, who holds their locks; None: it cannot start there now."""
    ids = [device.pk for device in wanted.devices]
    try:
        with transaction.atomic():
            rows = Device.objects.taking_runs().filter(pk__in=ids, held_for=None).order_by("uuid", "pk")
            ready = list(rows.select_for_update(**_ROW).select_related("host"))
            if len(ready) < len(ids) or Run.objects.holding().filter(device__in=ids).exists():
                return None
            waiting = [Run.objects.waiting_for(device).filter(pk=wanted.run_id) for device in ready]
            run = _locked(waiting[0]) if all(each.exists() for each in waiting) else None
            ready.sort(key=lambda device: ids.index(device.pk))
            if run is None or run.device_count != len(ready) or not _start(run, ready, owner[:250]):
                return None
    except IntegrityError:  # one_running_run_per_device: another claim was quicker
        return None
    return Run.objects.with_places().get(pk=run.pk)


def estimate_claim(*, owner: str) -> Run | None:
    """Claim the next estimate. It needs no device, so any worker of the default queue may take it."""
    with transaction.atomic():
        waiting = Run.objects.waiting_estimates()
        run = _first_locked(waiting, _groups(waiting), Run.objects.estimating())
        if run is None or not _start(run, [], owner[:250]):
            return None
    return Run.objects.with_places().get(pk=run.pk)


def _next(waiting: RunQuerySet, peers: RunQuerySet, device: Device) -> Run | DeviceSet | None:
    groups = _groups(waiting)
    if all(device_count == 1 for device_count, *_ in groups):
        return _first_locked(waiting, groups, peers)
    here, elsewhere = plan_for(device)
    for other in elsewhere:
        worker_wake(device=other)
    if here is None or len(here.devices) > 1:
        return here
    run = _locked(waiting.filter(pk=here.run_id))
    if run is None:  # another device took it meanwhile, and others may wait
        worker_wake(device=device)
    return run


def plan_for(device: Device) -> tuple[DeviceSet | None, list[Device]]:
    """Return what starts on the looking device, and the first devices of sets that start elsewhere."""
    queue, elsewhere = queue_now(), list[Device]()
    devices = {pk: each for pk, each in queue.devices.items() if each.is_up or pk == device.pk}
    seats = [Seat(pk, group_of(each), queue.free_after(each)) for pk, each in devices.items()]
    order = in_order(by_turn(queue.waiting_runs()), queue.held, queue.last_started)
    for start in starts(order, seats, prefers=device.pk):
        chosen = sorted((devices[each] for each in start.device_ids), key=lock_order)
        if chosen[0].pk == device.pk:
            return DeviceSet(start.run.run_id, tuple(chosen)), elsewhere
        if len(chosen) > 1:
            elsewhere.append(chosen[0])
        if device.pk in start.device_ids:
            break
    return None, elsewhere


def lock_order(device: Device) -> str:
    """Return what the locks of devices are sorted by: the UUID, or host and name where it has none."""
    return device.uuid or f"{device.host}-{device.device}"


def _first_locked(waiting: RunQuerySet, groups: Sequence[tuple[Any, ...]], peers: RunQuerySet) -> Run | None:
    """Lock the next row. A row that another claim holds is skipped."""
    for person, priority in _in_turn(groups, peers):
        run = _locked(waiting.filter(requested_by=person, priority=priority))
        if run is not None:
            return run
    return None


def _locked(waiting: RunQuerySet) -> Run | None:
    found = waiting.values_list("pk", flat=True).select_for_update(skip_locked=True, of=("self",)).first()
    return None if found is None else Run.objects.get(pk=found)


def _groups(waiting: RunQuerySet) -> list[tuple[Any, ...]]:
    columns = waiting.order_by().values_list("device_count", "requested_by", "priority")
    return list(columns.annotate(Min("created_at")))


def _in_turn(groups: Sequence[tuple[Any, ...]], peers: RunQuerySet) -> list[tuple[int | None, int]]:
    """Sort the persons and priorities with a startable run; the devices that their runs among `peers` hold count."""
    if len(groups) < 2:
        return [(person, priority) for _, person, priority, _ in groups]
    # counted here: grouped by the database, SQLite walks the whole history for it
    running = Counter[int | None]()
    for person, device_count in peers.running().order_by().values_list("requested_by", "device_count"):
        running[person] += device_count
    last_started = peers.last_started({person for _, person, *_ in groups})
    turns = {
        turn(person, priority, oldest, running[person], last_started.get(person)): (person, priority)
        for _, person, priority, oldest in groups
    }
    return [turns[each] for each in sorted(turns)]


def _start(run: Run, devices: Sequence[Device], owner: str) -> bool:
    """Move the run to running on these devices, the worker's own first; an estimate has none."""
    number, spec, first = run.attempt + 1, run.spec, devices[0] if devices else None
    if first is not None:  # it is executed with these devices and, where no price was requested, at their price
        spec = {**spec, "device": first.device if len(devices) == 1 else first.kind}
        prices = [each.price_per_hour_usd for each in devices]
        if run.uses_device_price and None not in prices:
            spec["price_per_hour_usd"] = sum(filter(None, prices)) * rules_of(run).groups_priced(run)
    still_waiting = Run.objects.queued().filter(pk=run.pk, cancel_requested=False)
    started = still_waiting.update(
        state=State.RUNNING,
        device=first,
        device_name=first.name if first else run.device_name,
        spec=spec,
        attempt=number,
        token=uuid4().hex,
        owner=owner,
        phase="",
        started_at=Now(),
        heartbeat_at=Now(),
        suspect_at=None,
    )
    if not started:
        return False
    names = [each.device for each in sorted(devices, key=index_of)] if len(devices) > 1 else None
    Attempt.objects.create(run_id=run.pk, number=number, device=first, devices=names, owner=owner, started_at=Now())
    if names:
        Device.objects.filter(pk__in=[each.pk for each in devices]).update(held_for=run)
    return True
