"""A device on the home page: how full its memory is, how old that reading is, what it is doing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils import timezone

from analysis.models import Device, State
from analysis.presentation.states import Chip

STALE_SECONDS = 10


@dataclass(frozen=True, slots=True)
class DeviceCard:
    """One device. `is_stale`: the reading is too old to be called live, or there is none."""

    device: Device
    chip: Chip
    running_id: int | None
    is_stale: bool


def device_cards(devices: Iterable[Device]) -> list[DeviceCard]:
    """Of devices that carry their unfinished runs in `open_runs`."""
    return [_card(device) for device in devices]


def _card(device: Device) -> DeviceCard:
    running = next((run.pk for run in device.open_runs if run.state == State.RUNNING), None)
    waiting = sum(run.state == State.QUEUED for run in device.open_runs)
    return DeviceCard(device, _chip(running, waiting), running, _is_stale(device))


def _chip(running: int | None, waiting: int) -> Chip:
    queue = f", {waiting} waiting" if waiting else ""
    if running is not None:
        return Chip("◐", f"run {running}{queue}", "chip-run")
    return Chip("○", f"{waiting} waiting", "chip-plain") if waiting else Chip("●", "idle", "chip-ok")


def _is_stale(device: Device) -> bool:
    if device.memory_read_at is None or device.memory_used_bytes is None:
        return True
    return (timezone.now() - device.memory_read_at).total_seconds() > STALE_SECONDS
