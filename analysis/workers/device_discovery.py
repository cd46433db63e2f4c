"""The devices of this host, as the engine finds and calibrates them; and how much of their memory is in use.

The engine runs in a child process, because finding devices means importing torch. Memory in use is read from
the driver (NVML) and from the kernel, by one process per host: `manage.py up`.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pynvml
from django.conf import settings
from django.db.models import BigIntegerField, F, Q, Value
from django.db.models.functions import Greatest, Now
from django.utils import timezone

from analysis.models import Device, DeviceDay, Host
from analysis.models.text import storable_text
from analysis.runs.device_admin import device_columns
from analysis.workers.device_lock import other_holder
from analysis.workers.engine_env import engine_environment
from engine.errors import DeviceUnavailable, EngineError
from engine.estimate.calibration import Calibration
from engine.facts.result import DeviceFacts
from engine.machine.device_lock import inherited_by_child

logger = logging.getLogger(__name__)

_FIND_SECONDS, _CALIBRATE_SECONDS = 120, 300
_MEMINFO = Path("/proc/meminfo")


def _ask_engine(
    *question: str,
    seconds: float,
    command: Sequence[str] | None = None,
    environment: Mapping[str, str] | None = None,
    keep_open: Sequence[int] = (),
) -> subprocess.CompletedProcess[str]:
    """Have the engine answer a question in a child process. Raises OSError and TimeoutExpired."""
    return subprocess.run(
        [*(command or settings.ENGINE_COMMAND), *question, "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        start_new_session=True,
        env=engine_environment(os.environ) | dict(environment or {}),
        pass_fds=keep_open,
        cwd=settings.BASE_DIR,
    )


def devices_find(command: Sequence[str] | None = None) -> list[DeviceFacts]:
    """List the devices of this host by the engine. Raises DeviceUnavailable when the engine fails."""
    try:
        answer = _ask_engine("devices", seconds=_FIND_SECONDS, command=command)
        answer.check_returncode()
        return [DeviceFacts.from_dict(facts) for facts in json.loads(answer.stdout)]
    except subprocess.CalledProcessError as exc:
        raise DeviceUnavailable(f"The engine cannot list this host's devices: {exc.stderr.strip()[-2000:]}") from exc
    except (OSError, subprocess.TimeoutExpired, ValueError, TypeError) as exc:
        raise DeviceUnavailable(f"The engine cannot list this host's devices: {exc}") from exc


def calibration_measure(
    device: Device, keep_open: Sequence[int] = (), command: Sequence[str] | None = None
) -> Calibration:
    """Have the engine calibrate a card; it inherits `keep_open`, the caller's lock. Raises EngineError."""
    name, environment = device.device, inherited_by_child(keep_open)
    if device.uuid and device.compute_capability:  # NVIDIA: chosen by UUID
        name, environment = "cuda:0", environment | {"CUDA_VISIBLE_DEVICES": device.uuid}
    how: dict[str, Any] = {"command": command, "environment": environment, "keep_open": keep_open}
    try:
        answer = _ask_engine("calibrate", name, seconds=_CALIBRATE_SECONDS, **how)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise DeviceUnavailable(f"the device could not be calibrated: {exc}") from exc
    if answer.returncode != 0:
        reason = answer.stderr.strip()[-2000:] or "no reason was given"
        raise EngineError(f"the device could not be calibrated: {reason}")
    try:
        return Calibration.from_dict(json.loads(answer.stdout))
    except (AttributeError, TypeError, ValueError) as exc:
        raise EngineError(f"the engine's calibration cannot be read: {exc!r}") from exc


def accelerators_or_cpu(found: Iterable[DeviceFacts]) -> list[DeviceFacts]:
    """Return the devices that a host offers by default: its accelerators, or without any its CPU."""
    devices = list(found)
    return [facts for facts in devices if facts.kind != "cpu"] or devices


def devices_register(found: Iterable[DeviceFacts]) -> list[Device]:
    """Store a row per device of this host. Price and `enabled` are set by people and stay as they are."""
    return [_register(facts) for facts in found]


def device_of_this_host(name: str) -> Device:
    """Return this host's row of `cuda:0`, `cpu`, ... or of a UUID, registered if missing. Raises DeviceUnavailable."""
    known = Device.objects.on_host(settings.HOST_NAME).filter(Q(device=name) | Q(uuid=name)).first()
    return known or device_register(name)


def device_register(name: str) -> Device:
    """Look for this device, by the engine's name or by UUID, and store its row. Raises DeviceUnavailable."""
    found = devices_find()
    for facts in found:
        if name in (facts.device, facts.uuid):
            return _register(facts)
    there_are = ", ".join(f"{facts.device} {facts.uuid or ''}".strip() for facts in found)
    raise DeviceUnavailable(f"{name} is not a device of this host; it has {there_are or 'none'}")


def devices_refresh(devices: Iterable[Device], *, silent_seconds: float = 0.0) -> None:
    """Store these devices' sign of life, memory in use and other holders; an unknown figure stays None."""
    seen_at = Now() - timedelta(seconds=silent_seconds)
    for device in devices:
        used, busy, holder = memory_used_bytes(device), busy_percent(device), other_holder(device)
        device.held_process, device.held_work = (holder.process, holder.work) if holder else ("", "")
        device.held_since = holder.since if holder else None
        Device.objects.filter(pk=device.pk).update(
            last_seen_at=seen_at,
            memory_used_bytes=used,
            busy_percent=busy,
            memory_read_at=None if used is None else Now(),
            held_process=storable_text(device.held_process, 100),
            held_work=storable_text(device.held_work, 200),
            held_since=device.held_since,
        )
        if used is not None:
            reading_add(device, used, busy)


def reading_add(device: Device, used_bytes: int, percent: int | None) -> None:
    """Add a reading to the device's day (UTC). Only its own worker writes these rows."""
    today = timezone.now().astimezone(UTC).date()
    busy = {"busy_reading_count": int(percent is not None), "busy_sum_percent": percent or 0}
    is_added = DeviceDay.objects.filter(device=device, day=today).update(
        reading_count=F("reading_count") + 1,
        used_sum_bytes=F("used_sum_bytes") + used_bytes,
        most_used_bytes=Greatest("most_used_bytes", Value(used_bytes, output_field=BigIntegerField())),
        **{name: F(name) + more for name, more in busy.items()},
    )
    if not is_added:
        first = {"reading_count": 1, "used_sum_bytes": used_bytes, "most_used_bytes": used_bytes, **busy}
        DeviceDay.objects.bulk_create([DeviceDay(device=device, day=today, **first)], ignore_conflicts=True)


def memory_used_bytes(device: Device) -> int | None:
    """Return the memory that all processes together hold; None where it cannot be read."""
    if device.kind == "cuda":
        return _card_used_bytes(device)
    return host_used_bytes() if device.kind == "cpu" else None


def host_used_bytes(meminfo: Path = _MEMINFO) -> int | None:
    """Return `MemTotal - MemAvailable`: the memory that programs could not get, as `free` counts it."""
    with suppress(OSError, KeyError, ValueError):
        lines = (line.split() for line in meminfo.read_text().splitlines())
        kib = {fields[0].rstrip(":"): int(fields[1]) for fields in lines if len(fields) >= 2}
        return (kib["MemTotal"] - kib["MemAvailable"]) * 1024
    return None


def foreign_use_read(device: Device) -> None:
    """Store how much memory other processes hold on a card. The caller holds its lock, so none of it is ours."""
    used = _card_used_bytes(device) if device.kind == "cuda" else None
    if used != device.foreign_used_bytes:
        device.foreign_used_bytes = used
        device.save(update_fields=["foreign_used_bytes"])


def busy_percent(device: Device) -> int | None:
    """Read the share of the last moments in which any kernel ran, as `nvidia-smi` has it; None if not told."""
    if device.kind != "cuda":
        return None
    return _read_card(device, "utilization", lambda card: pynvml.nvmlDeviceGetUtilizationRates(card).gpu)


def _card_used_bytes(device: Device) -> int | None:
    """Read the card's memory in use, as `nvidia-smi --query-gpu=memory.used` reports it."""
    return _read_card(device, "memory", lambda card: pynvml.nvmlDeviceGetMemoryInfo(card).used)


def _read_card(device: Device, what: str, read: Callable[[Any], int]) -> int | None:
    try:
        pynvml.nvmlInit()
        uuid = device.uuid if device.uuid.startswith(("GPU-", "MIG-")) else f"GPU-{device.uuid}"
        return int(read(pynvml.nvmlDeviceGetHandleByUUID(uuid)))
    except pynvml.NVMLError as exc:
        logger.debug("no %s figure for %s: %s", what, device, exc)
        return None


def _register(facts: DeviceFacts) -> Device:
    """Store one device. A card's row is found by its UUID and moves with the card; others by host and name."""
    host, _ = Host.objects.get_or_create(name=settings.HOST_NAME)
    place = {"host": host, "device": facts.device}
    identity = {"uuid": facts.uuid} if facts.uuid else {**place, "uuid": ""}
    device, _ = Device.objects.update_or_create(
        **identity,
        defaults={**place, "name": storable_text(facts.name, len(facts.name)), **device_columns(facts)},
    )
    return device
