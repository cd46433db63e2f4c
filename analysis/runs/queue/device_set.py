"""What starts next on a device while runs of several devices wait, by the rule in `reservation`.

All devices of a set are locked in the order of their UUIDs, by the worker of the first: no two workers wait for each
other.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.models import Device
from analysis.runs.queue.queue_now import queue_now
from analysis.runs.queue.reservation import Seat, starts
from analysis.runs.queue.scheduling import by_turn, group_of, in_order


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
    queue, elsewhere = queue_now(), list[Device]()
    devices = {pk: each for pk, each in queue.devices.items() if each.is_up or pk == device.pk}
    seats = [Seat(pk, group_of(each), queue.free_after(each)) for pk, each in devices.items()]
    order = in_order(by_turn(queue.waiting_runs()), queue.held, queue.last_started)
    for start in starts(order, seats, prefers=device.pk):
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
