"""The devices: what they are, how much they hold, what a process took. Needs torch.

`Accelerator` serves CUDA, ROCm (which presents itself as CUDA) and XPU by one path: `torch.cuda` and
`torch.xpu` have the same functions. `Mps` and `Cpu` differ where they must. All figures are bytes.

Known limits: MPS keeps no peak, so its figures are read at the end of each phase and may miss a spike
within one; on CPU the budget counts tensors, not what libraries take from the operating system.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import platform
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import pynvml
import torch

from engine import nvml
from engine.errors import DeviceUnavailable, SpecError
from engine.result import DeviceFacts
from engine.spec import CPU_DEFAULT_LIMIT_BYTES, RunSpec
from engine.units import MIB, format_bytes

HOST_RESERVE_BYTES = 512 * MIB


def resolve(name: str) -> torch.device:
    """`auto`, `cuda:1`, ... as a device that is really there. Raises DeviceUnavailable otherwise."""
    if name == "auto":
        return torch.device(available()[0])
    device = torch.device(name)
    if device.type != "cpu" and device.index is None:
        device = torch.device(device.type, 0)
    if str(device) not in available():
        raise DeviceUnavailable(
            f"{name} is not available here (torch {torch.__version__}); available: {', '.join(available())}"
        )
    return device


def available() -> tuple[str, ...]:
    """Every device of this machine, best first; `cpu` always last."""
    names = [f"{kind}:{i}" for kind in ("cuda", "xpu") for i in range(_count(kind))]
    if torch.backends.mps.is_available():
        names.append("mps:0")
    return (*names, "cpu")


def open_device(spec: RunSpec) -> Device:
    """The device of `spec`, with its memory limit in force. Refuses what it cannot do."""
    opened = _device(spec.device)
    opened.check(spec)
    opened.apply_limit(spec.memory_limit_bytes)
    return opened


def facts_of(name: str) -> DeviceFacts:
    """What there is to know of a device without using it."""
    return _device(name).facts()


def listed() -> list[DeviceFacts]:
    """Every device of this machine with its facts, MIG instances as devices of their own; `cpu` last."""
    with_instances = None
    if torch.cuda.is_available() and not torch.version.hip:
        with_instances = nvml.devices_with_instances(pynvml, os.environ.get("CUDA_VISIBLE_DEVICES"))
    if with_instances is None:
        return [facts_of(name) for name in available()]
    return with_instances + [facts_of(name) for name in available() if not name.startswith("cuda")]


def _device(name: str) -> Device:
    device = resolve(name)
    kinds: dict[str, type[Device]] = {"cpu": Cpu, "mps": Mps}
    return kinds.get(device.type, Accelerator)(device)


class Device(ABC):
    """What the probe needs of a device. The base says "not measured" to everything a device may lack."""

    has_caching_allocator = False

    def __init__(self, torch_device: torch.device) -> None:
        self.torch_device = torch_device
        self.limit_bytes = 0

    def check(self, spec: RunSpec) -> None:
        """Raise SpecError for a setting this device cannot do."""
        if spec.precision == "tf32":
            raise SpecError("precision", f"tf32 needs a CUDA GPU of compute capability 8.0 or later, not {self.name}")

    def apply_limit(self, limit_bytes: int | None) -> None:
        """Hold the process to `limit_bytes`, or to the whole device."""
        if limit_bytes is not None and limit_bytes > self.capacity_bytes:
            raise SpecError(
                "memory_limit_bytes",
                f"{format_bytes(limit_bytes)} is above what {self.name} has ({format_bytes(self.capacity_bytes)})",
            )
        self.limit_bytes = limit_bytes or self.capacity_bytes

    @property
    @abstractmethod
    def name(self) -> str:
        """The vendor's name."""

    @property
    @abstractmethod
    def capacity_bytes(self) -> int:
        """All the memory there is."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until everything queued on the device is done."""

    @abstractmethod
    def start_from_clean(self) -> None:
        """Give cached blocks back and forget earlier peaks."""

    def allocated_peak_bytes(self) -> int | None:
        return None

    def reserved_peak_bytes(self) -> int | None:
        return None

    def used_bytes(self) -> int | None:
        """What the driver counts as used on the whole device: context, workspaces, other processes and all."""
        return None

    def allocator_retries(self) -> int | None:
        return None

    def facts(self) -> DeviceFacts:
        return DeviceFacts(
            device=str(self.torch_device),
            kind=self.torch_device.type,
            name=self.name,
            capacity_bytes=self.capacity_bytes,
            limit_bytes=self.limit_bytes or None,
        )


class Accelerator(Device):
    """CUDA, ROCm and XPU."""

    has_caching_allocator = True

    def __init__(self, torch_device: torch.device) -> None:
        super().__init__(torch_device)
        self.module: Any = importlib.import_module(f"torch.{torch_device.type}")
        self.properties: Any = self.module.get_device_properties(torch_device)

    @property
    def name(self) -> str:
        return str(self.properties.name)

    @property
    def capacity_bytes(self) -> int:
        return int(self.properties.total_memory)

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """(8, 0) for an A100; None where there is no such thing (ROCm, XPU)."""
        if not self._is_nvidia:
            return None
        return int(self.properties.major), int(self.properties.minor)

    def check(self, spec: RunSpec) -> None:
        capability = self.compute_capability
        if spec.precision == "tf32" and (capability is None or capability < (8, 0)):
            super().check(spec)
        if spec.precision == "bf16" and capability is not None and capability < (8, 0):
            raise SpecError("precision", f"bf16 needs compute capability 8.0 or later; {self.name} has {capability}")

    def apply_limit(self, limit_bytes: int | None) -> None:
        super().apply_limit(limit_bytes)
        if limit_bytes is not None:
            if not hasattr(self.module, "set_per_process_memory_fraction"):
                raise SpecError("memory_limit_bytes", f"torch {torch.__version__} cannot limit {self.torch_device}")
            self.module.set_per_process_memory_fraction(limit_bytes / self.capacity_bytes, self.torch_device)

    def synchronize(self) -> None:
        self.module.synchronize(self.torch_device)

    def start_from_clean(self) -> None:
        self.module.empty_cache()
        self.module.reset_peak_memory_stats(self.torch_device)

    def allocated_peak_bytes(self) -> int | None:
        return int(self.module.max_memory_allocated(self.torch_device))

    def reserved_peak_bytes(self) -> int | None:
        return int(self.module.max_memory_reserved(self.torch_device))

    def used_bytes(self) -> int | None:
        if not hasattr(self.module, "mem_get_info"):
            return None
        free, total = self.module.mem_get_info(self.torch_device)
        return int(total - free)

    def allocator_retries(self) -> int | None:
        retries = self.module.memory_stats(self.torch_device).get("num_alloc_retries")
        return None if retries is None else int(retries)

    def facts(self) -> DeviceFacts:
        capability = self.compute_capability
        return DeviceFacts(
            device=str(self.torch_device),
            kind=self.torch_device.type,
            name=self.name,
            capacity_bytes=self.capacity_bytes,
            limit_bytes=self.limit_bytes or None,
            uuid=self._uuid(),
            compute_capability=None if capability is None else f"{capability[0]}.{capability[1]}",
            **(nvml.driver_facts(pynvml, self._uuid()) if self._is_nvidia else {}),
        )

    @property
    def _is_nvidia(self) -> bool:
        return self.torch_device.type == "cuda" and not torch.version.hip

    def _uuid(self) -> str | None:
        confined_to = nvml.mig_uuid(os.environ.get("CUDA_VISIBLE_DEVICES")) if self._is_nvidia else None
        uuid = getattr(self.properties, "uuid", None)
        return confined_to or (None if uuid is None else f"GPU-{uuid}")


class Mps(Device):
    """Apple's GPU. It shares the host's memory; `recommended_max_memory` is what it may use of it."""

    has_caching_allocator = True

    @property
    def name(self) -> str:
        return f"Apple {platform.machine()} GPU"

    @property
    def capacity_bytes(self) -> int:
        return int(torch.mps.recommended_max_memory())

    def apply_limit(self, limit_bytes: int | None) -> None:
        super().apply_limit(limit_bytes)
        if limit_bytes is not None:
            torch.mps.set_per_process_memory_fraction(limit_bytes / self.capacity_bytes)

    def synchronize(self) -> None:
        torch.mps.synchronize()

    def start_from_clean(self) -> None:
        torch.mps.empty_cache()

    def allocated_peak_bytes(self) -> int | None:
        return int(torch.mps.current_allocated_memory())

    def reserved_peak_bytes(self) -> int | None:
        return int(torch.mps.driver_allocated_memory())


class Cpu(Device):
    """The host. Its memory limit is a budget on the bytes of live tensors, so that the boundary is exact."""

    @property
    def name(self) -> str:
        return _cpu_model() or platform.processor() or platform.machine()

    @property
    def capacity_bytes(self) -> int:
        return _host_memory_bytes()

    def apply_limit(self, limit_bytes: int | None) -> None:
        super().apply_limit(limit_bytes or min(CPU_DEFAULT_LIMIT_BYTES, self.capacity_bytes))
        _guard_host()

    def synchronize(self) -> None:
        """Nothing is queued: the CPU computes as it is called."""

    def start_from_clean(self) -> None:
        """Give what earlier probes left in the C library's heap back to the system."""
        with contextlib.suppress(OSError, AttributeError):  # only glibc has it
            ctypes.CDLL(None).malloc_trim(0)


def _count(kind: str) -> int:
    module = getattr(torch, kind, None)
    return int(module.device_count()) if module is not None and module.is_available() else 0


def _cpu_model() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def _host_memory_bytes() -> int:
    """Physical memory, or the control group's limit where that is lower."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return physical
    return min(physical, int(limit)) if limit.isdigit() else physical


def _guard_host() -> None:
    """Let this process have no more memory than the host has to spare, so that a runaway probe cannot take it down.

    The guard is far above any budget: heap fragmentation makes a process hold two or three times the bytes of
    its tensors, and a guard near the budget would refuse sizes that fit.
    """
    try:
        resource = importlib.import_module("resource")
        guard = (
            _kib_field("/proc/self/status", "VmData") + _kib_field("/proc/meminfo", "MemAvailable") - HOST_RESERVE_BYTES
        )
        resource.setrlimit(resource.RLIMIT_DATA, (guard, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    except (ImportError, OSError, ValueError, AttributeError):
        return  # not Linux, or not allowed: the budget still decides, only the guard is missing


def _kib_field(path: str, key: str) -> int:
    """A figure of a /proc file given in kB, as bytes."""
    lines = Path(path).read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))
