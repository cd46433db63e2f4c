"""A device in words: what holds it; and on the home page its memory in use, the age of that reading, its state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from django.utils import timezone

from analysis.formatting import bytes_text, day_and_clock, describe_elapsed
from analysis.models import Device
from analysis.models.device import DeviceWithActivity
from analysis.presentation.labels import Chip

HELD = Chip("◐", "busy", "chip-run")
"""The label of a device that another program holds."""
FILLED_BY_OTHERS = Chip("◒", "used by others", "chip-run")
"""The label of a GPU without a run in whose memory other programs are."""
STALE_SECONDS = 10
_OLD = timedelta(seconds=15)  # three times the interval at which a worker looks


def describe_hold(device: Device) -> str:
    """Write "held by python -m ... cpu (process 546 on vm) since 14:30 UTC", with its age if old; empty if free."""
    if not device.is_held:
        return ""
    since = f" since {day_and_clock(device.held_since)}" if device.held_since else ""
    age = None if device.last_seen_at is None else timezone.now() - device.last_seen_at
    seen = f", seen {describe_elapsed(age.total_seconds())}" if age is not None and age > _OLD else ""
    return f"held by {holder_text(device)}{since}{seen}"


def holder_text(device: Device) -> str:
    """Write "python -m engine bert-tiny cpu (process 546 on vm)"; empty where no other program holds the device."""
    return f"{device.held_work} ({device.held_process})" if device.held_work else device.held_process


@dataclass(frozen=True, slots=True)
class DeviceCard:
    """One device. `is_stale`: the reading is too old to be called live, or there is none."""

    device: Device
    chip: Chip
    running_id: int | None
    note: str

    @property
    def is_stale(self) -> bool:
        if self.device.memory_read_at is None or self.device.memory_used_bytes is None:
            return True
        return (timezone.now() - self.device.memory_read_at).total_seconds() > STALE_SECONDS


def device_cards(
    devices: Iterable[DeviceWithActivity], waiting_by_device: Mapping[int | None, int]
) -> list[DeviceCard]:
    return [
        DeviceCard(device, _chip(device, waiting_by_device.get(device.pk, 0)), device.running_id, _note(device))
        for device in devices
    ]


def _maintenance(device: DeviceWithActivity) -> str:
    if not device.is_up:
        return "no sign of life"
    if device.takes_runs:
        return ""
    return "drained" if device.drained or device.host.drained else "maintenance"


def _note(device: DeviceWithActivity) -> str:
    maintenance = "" if device.takes_runs else device.maintenance_note or device.host.maintenance_note
    foreign = device.foreign_used_bytes
    is_shared = device.is_shared and foreign is not None
    shared = (
        f"other processes hold {bytes_text(foreign)}: only runs that accept a shared device start" if is_shared else ""
    )
    return "; ".join(text for text in (maintenance, _hold(device), shared) if text)


def _hold(device: DeviceWithActivity) -> str:
    return describe_hold(device) if device.is_up and device.running_id is None else ""


def _chip(device: DeviceWithActivity, waiting: int) -> Chip:
    maintenance = _maintenance(device)
    queue = "".join(f", {part}" for part in (f"{waiting} waiting" if waiting else "", maintenance) if part)
    if device.running_id is not None:
        return Chip("◐", f"run {device.running_id}{queue}", "chip-run")
    if _hold(device):
        return replace(HELD, word=f"{HELD.word}{queue}")
    if maintenance:
        return Chip("⊘", f"{maintenance}{f', {waiting} waiting' if waiting else ''}", "chip-plain")
    if waiting:
        return Chip("○", f"{waiting} waiting", "chip-plain")
    return FILLED_BY_OTHERS if device.is_filled_by_others else Chip("●", "idle", "chip-ok")
