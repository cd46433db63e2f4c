"""The devices of this host: what the engine finds, kept as rows; and how much of their memory is in use.

The engine is asked in a child process, for finding devices means importing torch. Memory in use comes from
the driver (NVML) and from the kernel, read by one process per host: `manage.py up`.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import pynvml
from django.conf import settings
from django.db.models.functions import Now

from analysis.engine_process import ENGINE_COMMAND, engine_environment
from analysis.models import Device
from engine.errors import DeviceUnavailable, SpecError
from engine.result import DeviceFacts

logger = logging.getLogger(__name__)

_FIND_SECONDS = 120
_MEMINFO = Path("/proc/meminfo")


def host_name() -> str:
    return socket.gethostname()


def devices_find(command: Sequence[str] = ENGINE_COMMAND) -> list[DeviceFacts]:
    """Ask the engine what this host has. Raises DeviceUnavailable when it cannot say."""
    try:
        answer = subprocess.run(
            [*command, "devices", "--json"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_FIND_SECONDS,
            start_new_session=True,
            env=engine_environment(os.environ),
            cwd=settings.BASE_DIR,
        )
        return [DeviceFacts.from_dict(facts) for facts in json.loads(answer.stdout)]
    except subprocess.CalledProcessError as exc:
        raise DeviceUnavailable(f"The engine cannot list this host's devices: {exc.stderr.strip()[-2000:]}") from exc
    except (OSError, subprocess.TimeoutExpired, ValueError, TypeError) as exc:
        raise DeviceUnavailable(f"The engine cannot list this host's devices: {exc}") from exc


def accelerators_or_cpu(found: Iterable[DeviceFacts]) -> list[DeviceFacts]:
    """What a host offers by itself: its accelerators; the CPU where there is none."""
    devices = list(found)
    return [facts for facts in devices if facts.kind != "cpu"] or devices


def devices_register(found: Iterable[DeviceFacts]) -> list[Device]:
    """Keep a row per device of this host. Price and `enabled` belong to people and stay as they are."""
    return [_register(facts) for facts in found]


def device_of_this_host(name: str) -> Device:
    """The row of `cuda:0`, `cpu`, ... here; found and registered when there is none yet. Raises DeviceUnavailable."""
    known = Device.objects.on_host(host_name()).filter(device=name).first()
    if known:
        return known
    found = {facts.device: facts for facts in devices_find()}
    if name not in found:
        raise DeviceUnavailable(f"{name} is not a device of this host; it has {', '.join(found) or 'none'}")
    return _register(found[name])


def device_choose(name: str) -> Device:
    """The enabled device for `auto`, a kind (`cuda`) or a name (`cuda:1`). Raises SpecError, naming what there is."""
    enabled = Device.objects.enabled().best_first()
    kind, _, number = name.partition(":")
    asked = enabled.filter(device=name) if number else enabled.filter(kind=kind)
    if device := (enabled if name == "auto" else asked).first():
        return device
    there_are = ", ".join(sorted({device.device for device in enabled}))
    raise SpecError("device", f"no enabled device {name}; there are: {there_are or 'none (start `manage.py up`)'}")


def devices_refresh(devices: Iterable[Device]) -> None:
    """Note that these devices are up, and what their memory holds now; unknown stays None."""
    for device in devices:
        used = memory_used_bytes(device)
        read_at = None if used is None else Now()
        Device.objects.filter(pk=device.pk).update(last_seen_at=Now(), memory_used_bytes=used, memory_read_at=read_at)


def memory_used_bytes(device: Device) -> int | None:
    """What all processes together hold, or None where nothing can say."""
    if device.kind == "cuda":
        return _card_used_bytes(device)
    return host_used_bytes() if device.kind == "cpu" else None


def host_used_bytes(meminfo: Path = _MEMINFO) -> int | None:
    """`MemTotal - MemAvailable`, as `free` counts what programs could not get."""
    with suppress(OSError, KeyError, ValueError):
        lines = (line.split() for line in meminfo.read_text().splitlines())
        kib = {words[0].rstrip(":"): int(words[1]) for words in lines if len(words) >= 2}
        return (kib["MemTotal"] - kib["MemAvailable"]) * 1024
    return None


def _card_used_bytes(device: Device) -> int | None:
    """As `nvidia-smi --query-gpu=memory.used` says."""
    try:
        pynvml.nvmlInit()
        uuid = device.uuid if device.uuid.startswith(("GPU-", "MIG-")) else f"GPU-{device.uuid}"
        return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByUUID(uuid)).used)
    except pynvml.NVMLError as exc:
        logger.debug("no memory figure for %s: %s", device, exc)
        return None


def _register(facts: DeviceFacts) -> Device:
    device, _ = Device.objects.update_or_create(
        host=host_name(),
        device=facts.device,
        defaults={
            "kind": facts.kind,
            "name": facts.name,
            "uuid": facts.uuid or "",
            "capacity_bytes": facts.capacity_bytes,
            "driver": facts.driver or "",
            "compute_capability": facts.compute_capability or "",
            "last_seen_at": Now(),
        },
    )
    return device
