"""PURE: the context of the fleet page: devices, memory in use as their workers last read it, runs and queues."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import groupby, takewhile
from typing import Any

from analysis.charts.bars import Slice, slices_of
from analysis.formatting import bytes_text
from analysis.lists.use.days import DAY
from analysis.models import Device, DeviceDay, Host, Run
from analysis.models.device import DeviceWithActivity
from analysis.presentation.device_cards import FILLED_BY_OTHERS, HELD, STALE_SECONDS, describe_hold
from analysis.presentation.kinds import run_place
from analysis.presentation.labels import Chip, name_of_run
from analysis.presentation.run_state import describe_queue_position
from analysis.runs.gpu_catalog import Price, gpu_of
from analysis.runs.queue.forecast import QueuePosition
from analysis.runs.queue.queue_now import index_of
from engine.facts.progress import PHASE_NAMES

WAITING_SHOWN_PER_DEVICE = 3
HELD_DAYS = 90
"""Days that are looked through for how long others have held a device's memory."""


def fleet_hosts(
    devices: Sequence[DeviceWithActivity],
    running: Mapping[int | None, Run],
    waiting: Iterable[dict[str, Any]],
    waiting_counts: Mapping[int | None, int],
    prices: Mapping[str, Price],
    memory: Mapping[tuple[int, date], DeviceDay],
    now: datetime,
) -> list[dict[str, Any]]:
    by_device: dict[int | None, list[dict[str, Any]]] = defaultdict(list)
    for each in waiting:
        by_device[each["run"].requested_device_id].append(each)
    sets: dict[int | None, list[DeviceWithActivity]] = defaultdict(list)
    for device in devices:
        sets[device.held_for_id].append(device)
    return [
        {
            "host": host,
            "note": _describe_maintenance(host, now),
            "devices": [
                _device(device, running.get(device.pk), now)
                | _waiting(by_device[device.pk], waiting_counts.get(device.pk, 0))
                | {"running_with": _with(device, sets[device.held_for_id]), "price": _price(device, prices)}
                | {"others": describe_others(device, memory, now.astimezone(UTC).date())}
                for device in host_devices
            ],
        }
        for host, host_devices in groupby(devices, key=lambda device: device.host)
    ]


def describe_others(device: DeviceWithActivity, memory: Mapping[tuple[int, date], DeviceDay], today: date) -> str:
    """Write "others hold 4.0 GiB, for 6 days": as long as at least half of it was in use on average; empty if free."""
    used_bytes = device.memory_used_bytes
    if not device.is_filled_by_others or used_bytes is None:
        return ""
    days = takewhile(
        lambda day: day is not None and day.mean_used_bytes >= used_bytes / 2,
        (memory.get((device.pk, today - DAY * back)) for back in range(HELD_DAYS)),
    )
    count = sum(1 for _ in days)
    return f"others hold {bytes_text(used_bytes)}{f', for {count} days' if count > 1 else ''}"


def _price(device: Device, prices: Mapping[str, Price]) -> Price | None:
    """Return the price that was set for the device, else its card's."""
    if device.price_per_hour_usd is not None:
        return Price(device.price_per_hour_usd, "set for this device", "", is_of_lab=True)
    gpu = gpu_of(device)
    return prices.get(gpu.id if gpu else device.name)


def _waiting(first: Sequence[dict[str, Any]], count: int) -> dict[str, Any]:
    shown = first[:WAITING_SHOWN_PER_DEVICE]
    return {"waiting": shown, "waiting_more": count - len(shown)}


def _with(device: Device, together: Sequence[Device]) -> str:
    """Name the other devices that a run of several holds: "with cuda:1, cuda:2"."""
    others = [each.device for each in sorted(together, key=index_of) if each.pk != device.pk]
    return f"with {', '.join(others)}" if device.held_for_id and others else ""


def waiting_runs(runs: Iterable[Run], positions: Mapping[int, QueuePosition]) -> list[dict[str, Any]]:
    numbers = {number: turn.position for number, turn in positions.items()}
    ordered = sorted(runs, key=lambda run: (numbers.get(run.pk) or math.inf, run.pk))
    return [
        {
            "run": run,
            "name": name_of_run(run),
            "place": run_place(run),
            "turn": describe_queue_position(positions[run.pk]) if run.pk in positions else "",
        }
        for run in ordered
    ]


def memory_parts(device: Device, *, is_running: bool) -> tuple[Slice, ...]:
    """Split memory in use into ours and others', as far as the readings allow.

    Without a run of ours, all memory in use is others'. During a run, others are assumed to hold what they held when it
    started. A CPU's figure is of the whole host, and cannot be split.
    """
    used, foreign = device.memory_used_bytes, device.foreign_used_bytes
    if used is None or not device.capacity_bytes:
        return ()
    if device.kind == "cpu":
        parts = [("part-any", "in use on the host", used)]
    elif not is_running:
        parts = [("part-foreign", "in use by others", used)]
    elif foreign is None:
        parts = [("part-any", "in use, owner unknown", used)]
    else:
        theirs = min(foreign, used)
        parts = [("part-ours", "this run", used - theirs), ("part-foreign", "others, as of its start", theirs)]
    return slices_of([part for part in parts if part[2]], device.capacity_bytes)


def _device(device: DeviceWithActivity, running: Run | None, now: datetime) -> dict[str, Any]:
    is_silent, read_at = not device.is_up, device.memory_read_at
    notes = [_describe_maintenance(device, now)]
    if device.is_shared:
        held = bytes_text(device.foreign_used_bytes)
        notes.append(
            f"others held {held} at the last attempt to start a run: only runs that accept a shared device start"
        )
    return {
        "device": device,
        "chip": _chip(device, running, is_silent),
        "running": running,
        "running_name": name_of_run(running) if running else "",
        "running_phase": PHASE_NAMES.get(running.phase, "").lower() if running else "",
        "hold": "" if running or is_silent else describe_hold(device),
        "parts": memory_parts(device, is_running=running is not None),
        "is_stale": read_at is None or (now - read_at).total_seconds() > STALE_SECONDS,
        "is_silent": is_silent,
        "notes": list(filter(None, notes)),
    }


def _chip(device: DeviceWithActivity, running: Run | None, is_silent: bool) -> Chip:
    if not device.enabled:
        return Chip("⊘", "disabled", "chip-plain")
    if is_silent:
        return Chip("▲", "no sign of life", "chip-bad")
    if running is not None:
        return Chip("◐", "running", "chip-run")
    if device.is_held:
        return HELD
    if not device.takes_runs:
        is_drained = device.drained or device.host.drained
        return Chip("⊘", "drained" if is_drained else "maintenance", "chip-plain")
    return FILLED_BY_OTHERS if device.is_filled_by_others else Chip("●", "idle", "chip-ok")


def _describe_maintenance(row: Host | Device, now: datetime) -> str:
    """Say why the host or device takes no new runs, and until when; empty where it does."""
    ends, parts = row.maintenance_until, []
    if row.drained:
        parts.append("drained: takes no new runs")
    if row.is_in_maintenance(now):
        until = f"until {ends:%Y-%m-%d %H:%M} UTC" if ends else "until further notice"
        parts.append(f"maintenance {until}{f': {row.maintenance_note}' if row.maintenance_note else ''}")
    return "; ".join(parts)
