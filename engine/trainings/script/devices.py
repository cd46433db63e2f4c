"""The devices of a training: takes their locks before the start, and gives the facts of the device that was used."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pynvml

from ...errors import CommandUntunable, DeviceUnavailable
from ...facts.provenance.parse import mig_profile
from ...facts.provenance.read import commit_of
from ...facts.result import DeviceFacts
from ...machine import host, nvml
from ...machine.device_lock import held_for_command, lock_path
from ...settings.ranks.emulation import limit_left
from ...settings.spec import CPU_DEFAULT_LIMIT_BYTES
from .notes.reading import Reading
from .spec import FunctionSpec, Limits, TuneSpec
from .start.environment import visible_devices

DRIVER_FILES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg", "/dev/nvmap", "/dev/nvgpu", "/dev/nvhost-ctrl")
"""The files of drivers that torch calls CUDA: NVIDIA's, ROCm's, that of WSL, and those of a Jetson."""


@contextmanager
def devices_held(
    spec: Limits,
    work: str | None = None,
    *,
    wait_seconds: float = 0.0,
    on_wait: Callable[[str], None] = lambda _: None,
) -> Iterator[None]:
    """Hold every device that the training may use. Raises DeviceBusy, which names the holder.

    Which one of several cards it will use is not known before it has started, so all that it sees are held. In one
    order for everybody, so that two that wait do not wait for each other.
    """
    with ExitStack() as locks:
        for facts in sorted(devices_seen(spec), key=lambda each: lock_path(device=each.device, uuid=each.uuid)):
            locks.enter_context(held_for_command(facts, work, wait_seconds=wait_seconds, on_wait=on_wait))
        yield


def devices_seen(spec: Limits) -> list[DeviceFacts]:
    """Return the devices that a training with this spec may use: the CPU, or all cards that it will see.

    Cards of other makers have no UUID here, and are known by their name. Raises DeviceUnavailable for CUDA on a host
    without a GPU's driver: a start would show it seconds later, on a CPU that others may hold.
    """
    if spec.device == "cpu":
        return [cpu_facts(spec)]
    if uuids := _uuids_seen(spec):
        return [DeviceFacts(f"cuda:{n}", "cuda", "", 0, uuid=uuid) for n, uuid in enumerate(uuids)]
    if spec.device == "auto":
        return [cpu_facts(spec)]
    kind, _, index = spec.device.partition(":")
    if kind == "cuda" and not any(Path(file).exists() for file in DRIVER_FILES):
        raise DeviceUnavailable(f"{spec.device} is not available here: this host has no GPU's driver; available: cpu")
    return [DeviceFacts(f"{kind}:{index or 0}", kind, "", 0)]


def others_on_cards(spec: Limits) -> dict[str, dict[str, Any]]:
    """Return by UUID what other programs hold of each card that a training may use. Read before the first start."""
    return {uuid: nvml.driver_facts(pynvml, uuid) for uuid in _uuids_seen(spec)}


def _uuids_seen(spec: Limits) -> tuple[str, ...]:
    if not spec.device.startswith(("auto", "cuda")):
        return ()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    seen = visible_devices(spec.device, visible).get("CUDA_VISIBLE_DEVICES", visible)
    return nvml.visible_uuids(pynvml, seen, os.environ.get("CUDA_DEVICE_ORDER"))


def facts_of(spec: Limits, reading: Reading, others: Mapping[str, Mapping[str, Any]]) -> DeviceFacts:
    """Return what is known of the device that the training ran on; `others` is what was held of each card before."""
    check_is_watched(reading)
    if card := reading.card:
        facts = card_facts(card, str(reading.data["device"]))
        limit_bytes = limit_left(spec.emulated_ranks, spec.memory_limit_bytes, card["total_bytes"])
        return replace(facts, limit_bytes=limit_bytes, **others.get(facts.uuid or "", {}))
    return cpu_facts(spec)


def card_facts(card: Mapping[str, Any], device: str) -> DeviceFacts:
    """Return what a process noted of its card, which it saw under the name `device`."""
    return DeviceFacts(
        device=device,
        kind="cuda",
        name=card["name"],
        capacity_bytes=card["total_bytes"],
        uuid=None if card["uuid"] is None else nvml.full_uuid(pynvml, card["uuid"]),
        compute_capability=card["compute_capability"],
    )


def check_is_watched(reading: Reading) -> None:
    """Raise CommandUntunable where a training ran on a device whose memory is not seen: those of Apple and Intel."""
    kind = str(reading.data["device"] or "cpu").partition(":")[0]
    if kind not in ("cpu", "cuda"):
        what = "what is watched is a GPU of NVIDIA or AMD, or the CPU"
        raise CommandUntunable("other_device", f"the training ran on {reading.data['device']}: {what}")


def environment_of(
    spec: TuneSpec | FunctionSpec, trained: Reading, device: DeviceFacts, started_as: Mapping[str, Any]
) -> dict[str, Any]:
    _, torch, *_ = trained.marks("armed")[0]
    versions = {"torch": torch, "python": trained.data["python"]}
    script = {**script_facts(spec.files, spec.directory), "batch": spec.batch}
    profile = mig_profile(device.name)
    mig = {} if profile is None else {"gpu_mig_profile": profile}
    return {**versions, **script, **mig, **started_as}


def check_kind(spec: Limits, device: DeviceFacts) -> None:
    """Raise CommandUntunable where the training ran on another kind of device than was requested."""
    wanted = spec.device.partition(":")[0]
    if wanted not in ("auto", device.kind):
        raise CommandUntunable("other_device", f"the training ran on {device.kind}, not on {wanted}")


def cpu_facts(spec: Limits) -> DeviceFacts:
    capacity_bytes = host.memory_bytes()
    limit_bytes = spec.memory_limit_bytes or min(CPU_DEFAULT_LIMIT_BYTES, capacity_bytes)
    return DeviceFacts("cpu", "cpu", host.cpu_model() or "CPU", capacity_bytes, limit_bytes)


def script_facts(command: Sequence[str], directory: str | None = None) -> dict[str, Any]:
    scripts = (Path(directory or "", part) for part in command if part.endswith((".py", ".sh")))
    script = next((path for path in scripts if path.is_file()), None)
    if script is None:
        return {"script": None, "script_sha256": None, "script_commit": None}
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    return {"script": script.name, "script_sha256": digest, "script_commit": commit_of(script.resolve().parent)}
