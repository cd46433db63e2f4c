"""Facts from NVIDIA's driver (NVML): other users of a card, its state, and its MIG instances.

Does not load torch. `nvml` is pynvml, or a synthetic module with the same names. CUDA shows a process at most one MIG
instance, and then no other card: only the driver can list all instances.

Known limits: the driver counts the memory of a device in its own way, so the capacity listed here may differ from
what a process on that device finds. Not run on a real MIG card yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from ..facts.provenance.parse import mig_profile
from ..facts.result import DeviceFacts

SEEN_ALONE = "cuda:0"
"""The name of a card or instance in a process whose CUDA_VISIBLE_DEVICES is only its uuid."""


def mig_uuid(visible_devices: str | None) -> str | None:
    """Return the MIG instance a process is confined to; None unless CUDA_VISIBLE_DEVICES names just one instance."""
    names_given = _split_names(visible_devices or "")
    return names_given[0] if len(names_given) == 1 and names_given[0].startswith("MIG-") else None


def keep_driver_loaded(nvml: Any) -> None:
    """Keep NVML open while this process lives: without persistence mode an unused card takes seconds to open."""
    with suppress(nvml.NVMLError):
        nvml.nvmlInit()


def full_uuid(nvml: Any, uuid: str) -> str:
    """Add the driver's prefix to a uuid that CUDA reports: of a card or of a MIG instance."""
    is_instance = _handle(nvml, f"MIG-{uuid}") is not None
    return f"{'MIG' if is_instance else 'GPU'}-{uuid}"


def _handle(nvml: Any, uuid: str | None) -> Any:
    try:
        nvml.nvmlInit()
        return nvml.nvmlDeviceGetHandleByUUID(uuid)
    except (nvml.NVMLError, TypeError, AttributeError):  # no driver, or a device that has no uuid
        return None


def driver_facts(nvml: Any, uuid: str | None) -> dict[str, Any]:
    """Return driver version and others' memory, as fields of DeviceFacts; empty where NVML has no answer.

    Read it before this process has a context there. Programs that draw count; a container hides all but their memory.
    """
    if (handle := _handle(nvml, uuid)) is None:
        return {}
    listed = [
        process
        for kind in ("Compute", "Graphics")
        for process in _answer(nvml, f"nvmlDeviceGet{kind}RunningProcesses", handle) or ()
    ]
    others = {p.pid: {"pid": p.pid, "used_bytes": p.usedGpuMemory} for p in listed if p.pid != os.getpid()}
    held = [p["used_bytes"] for p in others.values()]  # None in containers, where the driver does not report it
    memory = _answer(nvml, "nvmlDeviceGetMemoryInfo", handle, getattr(nvml, "nvmlMemory_v2", None))
    used_bytes = (None if None in held else sum(held)) if memory is None else int(memory.used)
    return {
        "driver": _answer(nvml, "nvmlSystemGetDriverVersion"),
        "foreign_processes": tuple(others.values()),
        "foreign_used_bytes": used_bytes,
    }


def settings(nvml: Any, uuid: str | None) -> dict[str, Any]:
    """Return the administrator's settings of a card that affect memory or speed; None for unreported ones."""
    handle = _handle(nvml, uuid)
    power = _answer(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle)
    ecc = _answer(nvml, "nvmlDeviceGetEccMode", handle)
    persistence = _answer(nvml, "nvmlDeviceGetPersistenceMode", handle)
    name = _answer(nvml, "nvmlDeviceGetName", handle) if (uuid or "").startswith("MIG-") else None
    return {
        "gpu_power_limit_watts": None if power is None else power / 1000,
        "gpu_ecc": None if ecc is None else bool(ecc[0]),
        "gpu_persistence_mode": None if persistence is None else bool(persistence),
        "gpu_mig_profile": None if name is None else mig_profile(str(name)),
    }


def readings(nvml: Any, uuid: str | None) -> dict[str, Any] | None:
    """Return the card's current state as far as reported; None where nothing is, as for a MIG instance."""
    if (handle := _handle(nvml, uuid)) is None:
        return None
    power = _answer(nvml, "nvmlDeviceGetPowerUsage", handle)
    active = _answer(nvml, "nvmlDeviceGetCurrentClocksEventReasons", handle)
    utilization = _answer(nvml, "nvmlDeviceGetUtilizationRates", handle)
    read = {
        "sm_clock_mhz": _answer(nvml, "nvmlDeviceGetClockInfo", handle, getattr(nvml, "NVML_CLOCK_SM", 1)),
        "sm_clock_highest_mhz": _answer(nvml, "nvmlDeviceGetMaxClockInfo", handle, getattr(nvml, "NVML_CLOCK_SM", 1)),
        "power_watts": None if power is None else power / 1000,
        "temperature_celsius": _answer(nvml, "nvmlDeviceGetTemperature", handle, 0),
        "utilization_fraction": None if utilization is None else utilization.gpu / 100,
        "throttle_reasons": None if active is None else throttle_reasons(active),
    }
    return read if any(value is not None for value in read.values()) else None


def throttle_reasons(active: int) -> list[str]:
    """Name the bits of NVML's mask of reasons. Idling and manual settings are no throttling."""
    return [name for bit, name in _THROTTLE_REASONS.items() if active & bit]


_THROTTLE_REASONS = {
    0x04: "sw_power_cap",
    0x08: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
}


def _answer(nvml: Any, function: str, *arguments: Any) -> Any:
    """Return the result of a driver function; None if it fails or is missing in the installed version."""
    given = [argument for argument in arguments if argument is not None]
    try:
        return getattr(nvml, function)(*given)
    except (nvml.NVMLError, AttributeError, TypeError):
        return None


def devices_with_instances(nvml: Any, visible_devices: str | None) -> list[DeviceFacts] | None:
    """Return all devices of a host with MIG: instances of divided cards, other cards whole; None without division.

    All are `cuda:0`, their name when visible alone; the uuid tells them apart. `visible_devices` leaves out others.
    """
    cards = list(_cards(nvml))
    if not any(_has_mig_enabled(nvml, card) for _, card in cards):
        return None
    names_given = None if visible_devices is None else _split_names(visible_devices)
    found: list[DeviceFacts] = []
    for index, card in cards:
        with suppress(nvml.NVMLError):  # a card that fell off the bus must not hide the others
            names = (str(index), nvml.nvmlDeviceGetUUID(card))
            facts = [_facts(nvml, card, handle) for handle in _devices_of(nvml, card)]
            found += [f for f in facts if names_given is None or _is_named(names_given, (*names, f.uuid or ""))]
    return found


def visible_uuids(nvml: Any, visible_devices: str | None, order: str | None) -> tuple[str, ...]:
    """Return the uuids of the cards and instances that a process sees; empty without NVIDIA's driver.

    Without `order` (CUDA_DEVICE_ORDER) a number may mean any card where they differ: then all are returned.
    """
    listed: list[tuple[int, str, str]] = []
    for index, card in _cards(nvml):
        with suppress(nvml.NVMLError):  # a card that fell off the bus must not hide the others
            name = nvml.nvmlDeviceGetName(card)
            listed += [(index, name, nvml.nvmlDeviceGetUUID(each)) for each in _devices_of(nvml, card)]
    names_given = None if visible_devices is None else _split_names(visible_devices)
    is_counted_alike = order == "PCI_BUS_ID" or len({name for _, name, _ in listed}) == 1
    if names_given is None or (not is_counted_alike and any(name.isdigit() for name in names_given)):
        return tuple(uuid for _, _, uuid in listed)
    return tuple(uuid for index, _, uuid in listed if _is_named(names_given, (str(index), uuid)))


def _cards(nvml: Any) -> Iterator[tuple[int, Any]]:
    count = 0
    with suppress(nvml.NVMLError):  # no driver here
        nvml.nvmlInit()
        count = nvml.nvmlDeviceGetCount()
    for index in range(count):
        with suppress(nvml.NVMLError):
            yield index, nvml.nvmlDeviceGetHandleByIndex(index)


def _has_mig_enabled(nvml: Any, card: Any) -> bool:
    """Whether MIG is enabled. Cards and drivers without MIG answer with an error."""
    mode = _answer(nvml, "nvmlDeviceGetMigMode", card)
    return mode is not None and bool(mode[0] == nvml.NVML_DEVICE_MIG_ENABLE)


def _devices_of(nvml: Any, card: Any) -> Iterator[Any]:
    if not _has_mig_enabled(nvml, card):
        yield card
        return
    for slot in range(nvml.nvmlDeviceGetMaxMigDeviceCount(card)):
        with suppress(nvml.NVMLError):  # an empty slot, or one that this user may not see
            yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, slot)


def _facts(nvml: Any, card: Any, handle: Any) -> DeviceFacts:
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(card)  # NVML has none for an instance
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


def _split_names(visible_devices: str) -> list[str]:
    return [word for part in visible_devices.split(",") if (word := part.strip())]


def _is_named(names_given: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a given name is one of the names, or the beginning of a uuid, as CUDA allows."""
    beginnings = tuple(word for word in names_given if word.startswith(("GPU-", "MIG-")))
    return any(name in names_given or name.startswith(beginnings) for name in names)
