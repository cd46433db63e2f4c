"""What starts next on a device while runs of several devices wait: reads queue and fleet for the rule in `reservation`.

All devices of a set are locked in the order of their UUIDs, by the worker of the first: no two workers wait for each
other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from analysis.database import database_now
from analysis.models import Device, Run
from analysis.runs.queue.forecast import BUDGET, READ, most_seconds, most_seconds_left, runs_by_device
from analysis.runs.queue.placement import request_of, slot_of
from analysis.runs.queue.reservation import Seat, starts
from analysis.runs.queue.scheduling import WaitingRun, by_turn, in_order, may_run

LOOKED_AT = 1_000
"""Waiting runs that are read, the highest priority and the oldest first."""


@dataclass(frozen=True, slots=True)
class DeviceSet:
    """A run that starts now, with its devices in the order of their locks: the worker of the first starts it."""

    run_id: int
    devices: tuple[Device, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What starts on the device that looks, and the first devices of sets that start elsewhere."""

    here: DeviceSet | None
    elsewhere: tuple[Device, ...]


def plan_for(device: Device) -> Plan:
    """Return what the rule says of this idle device."""
    taking = Device.objects.taking_runs().with_is_up().select_related("host").defer("calibration")
    rows: list[Any] = list(taking)
    devices: dict[int, Device] = {each.pk: each for each in rows if each.is_up or each.pk == device.pk}
    queue = Run.objects.on_devices().queued().filter(cancel_requested=False).order_by("-priority", "created_at", "id")
    waiting: list[Any] = list(queue.only(*READ).annotate(budget_seconds=BUDGET)[:LOOKED_AT])
    running_now = Run.objects.on_devices().running().annotate(budget_seconds=BUDGET)
    running: list[Any] = list(running_now.only("device_id", "requested_by_id", "started_at", "device_count"))
    held = Counter[int | None]()
    for run in running:
        held[run.requested_by_id] += run.device_count
    order = in_order(
        by_turn(map(_waiting_run, waiting)),
        held,
        Run.objects.on_devices().last_started({run.requested_by_id for run in waiting}),
    )
    people = {run.requested_by_id: run.requested_by for run in waiting}
    slots = {pk: slot_of(each) for pk, each in devices.items()}

    @cache
    def allowed(person: int | None) -> frozenset[int]:
        return frozenset(Device.objects.allowing(people[person]).values_list("pk", flat=True))

    def may_use(run: WaitingRun, device_id: int) -> bool:
        return may_run(run.ask, slots[device_id], run.person) and device_id in allowed(run.person)

    elsewhere: list[Device] = []
    seats = _seats(devices.values(), running, database_now())
    for start in starts(order, seats, may_use, prefers=device.pk):
        chosen = sorted((devices[each] for each in start.device_ids), key=lock_order)
        if chosen[0].pk == device.pk:
            return Plan(DeviceSet(start.run.run_id, tuple(chosen)), tuple(elsewhere))
        if len(chosen) > 1:
            elsewhere.append(chosen[0])
        if device.pk in start.device_ids:
            break
    return Plan(None, tuple(elsewhere))


def lock_order(device: Device) -> str:
    """Return what the locks of devices are sorted by: the UUID, or host and name where it has none."""
    return device.uuid or f"{device.host}-{device.device}"


def _waiting_run(run: Any) -> WaitingRun:
    return WaitingRun(
        *(run.pk, run.requested_by_id, run.priority, run.created_at),
        request_of(run),
        most_seconds=most_seconds(run.budget_seconds),
    )


def _seats(devices: Iterable[Device], running: Sequence[Any], now: datetime) -> list[Seat]:
    offered = sorted(devices, key=lambda each: (each.host.name, each.kind, index_of(each)))
    by_device, seats = runs_by_device(running, offered), []
    for device in offered:
        run: Any = by_device.get(device.pk)
        free_after = None if device.is_held else 0.0
        if run is not None:
            free_after = most_seconds_left(run, run.budget_seconds, now)
        seats.append(Seat(device.pk, slot_of(device).group, free_after))
    return seats


def index_of(device: Device) -> int:
    """Return the number in the device's name: 3 of cuda:3, and 0 where it has none."""
    _, _, number = device.device.partition(":")
    return int(number) if number.isdigit() else 0
