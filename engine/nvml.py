"""What NVIDIA's driver says of its cards (NVML): version, who else uses them, the instances they are cut into.

Knows no torch. `nvml` is pynvml, or a made-up module with the same names. CUDA shows a process at most one
MIG instance, and beside it no other card: where cards are cut up, only the driver can list what there is.

Known limits: the driver counts the memory of a device in its own way, so the capacity listed here may differ from
what a process on that device finds. Not run on a real MIG card yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from engine.result import DeviceFacts

SEEN_ALONE = "cuda:0"
"""The name of any card or instance in a process whose CUDA_VISIBLE_DEVICES is that uuid alone."""


def mig_uuid(visible_devices: str | None) -> str | None:
    """The MIG instance a process is confined to; None unless CUDA_VISIBLE_DEVICES names one and nothing else."""
    words = _words(visible_devices or "")
    return words[0] if len(words) == 1 and words[0].startswith("MIG-") else None


def driver_facts(nvml: Any, uuid: str | None) -> dict[str, Any]:
    """Driver version and what other processes hold, as fields of DeviceFacts; empty where NVML has no answer."""
    try:
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        others = [
            {"pid": p.pid, "used_bytes": p.usedGpuMemory}
            for p in nvml.nvmlDeviceGetComputeRunningProcesses(handle)
            if p.pid != os.getpid()
        ]
        held = [p["used_bytes"] for p in others]  # None where the driver does not say, in containers
        return {
            "driver": nvml.nvmlSystemGetDriverVersion(),
            "foreign_processes": tuple(others),
            "foreign_used_bytes": None if None in held else sum(held),
        }
    except nvml.NVMLError:
        return {}


def devices_with_instances(nvml: Any, visible_devices: str | None) -> list[DeviceFacts] | None:
    """Every device of a host with MIG: the instances of cards that are cut up, and the other cards whole.

    None where no card is cut up: torch can list those. All are called `cuda:0`, as they are when seen alone;
    the uuid tells them apart. `visible_devices` (CUDA_VISIBLE_DEVICES) leaves out what it does not name.
    """
    cards = list(_cards(nvml))
    if not any(_is_cut_up(nvml, card) for _, card in cards):
        return None
    words = None if visible_devices is None else _words(visible_devices)
    found: list[DeviceFacts] = []
    for index, card in cards:
        with suppress(nvml.NVMLError):  # a card that fell off the bus must not hide the others
            names = (str(index), nvml.nvmlDeviceGetUUID(card))
            facts = [_facts(nvml, card, handle) for handle in _devices_of(nvml, card)]
            found += [f for f in facts if words is None or _is_named(words, (*names, f.uuid or ""))]
    return found


def _cards(nvml: Any) -> Iterator[tuple[int, Any]]:
    """Index and handle of every card that answers."""
    count = 0
    with suppress(nvml.NVMLError):  # no driver here
        nvml.nvmlInit()
        count = nvml.nvmlDeviceGetCount()
    for index in range(count):
        with suppress(nvml.NVMLError):
            yield index, nvml.nvmlDeviceGetHandleByIndex(index)


def _is_cut_up(nvml: Any, card: Any) -> bool:
    """Whether MIG is in force. Cards and drivers without MIG answer with an error."""
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(card)
    except nvml.NVMLError:
        return False
    return bool(current == nvml.NVML_DEVICE_MIG_ENABLE)


def _devices_of(nvml: Any, card: Any) -> Iterator[Any]:
    """The handles of what can be computed on: the card, or its instances."""
    if not _is_cut_up(nvml, card):
        yield card
        return
    for slot in range(nvml.nvmlDeviceGetMaxMigDeviceCount(card)):
        with suppress(nvml.NVMLError_NotFound):  # an empty slot
            yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, slot)


def _facts(nvml: Any, card: Any, handle: Any) -> DeviceFacts:
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(card)  # an instance has none of its own
    uuid = nvml.nvmlDeviceGetUUID(handle)
    return DeviceFacts(
        device=SEEN_ALONE,
        kind="cuda",
        name=nvml.nvmlDeviceGetName(handle),
        capacity_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
        uuid=uuid,
        compute_capability=f"{major}.{minor}",
        **driver_facts(nvml, uuid),
    )


def _words(visible_devices: str) -> list[str]:
    return [word for part in visible_devices.split(",") if (word := part.strip())]


def _is_named(words: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a word is one of the names, or the beginning of a uuid, as CUDA allows."""
    beginnings = tuple(word for word in words if word.startswith(("GPU-", "MIG-")))
    return any(name in words or name.startswith(beginnings) for name in names)
