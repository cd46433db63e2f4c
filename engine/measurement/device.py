"""The devices: their facts, their capacity, and the memory that a process took. Needs torch.

`Accelerator` serves CUDA, ROCm (which presents itself as CUDA) and XPU in the same way: `torch.cuda` and
`torch.xpu` have the same functions. `Mps` and `Cpu` differ where they must. All figures are bytes.

Known limits: before torch 2.13 MPS records no peak, so its figures are read at the end of each phase and may miss a
spike within one; on CPU the budget counts tensors, not what libraries take from the operating system.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import math
import os
import platform
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple

import pynvml
import torch

from ..errors import DeviceUnavailable, SpecError
from ..facts.result import DeviceFacts, Outcome
from ..machine import host, nvml
from ..settings.spec import CPU_DEFAULT_LIMIT_BYTES, RunSpec, check_reserve
from ..settings.training_spec import check_precision
from ..text.units import MIB, format_bytes
from .oom import classify

RELEASE_SECONDS = 10.0  # time limit for a driver to take back the memory of a dead process
SETTLED_BYTES = 64 * MIB  # that memory counts as returned up to this rest
HAS_PEAKS_OF_MPS = torch.__version__ >= "2.13"  # https://github.com/pytorch/pytorch/pull/186748


def resolve(name: str) -> torch.device:
    """Return `auto`, `cuda:1`, ... as an existing device. Raises DeviceUnavailable where there is none."""
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
    """Return every device of this machine, best first; `cpu` always last."""
    names = []
    for kind in ("cuda", "xpu"):
        module = getattr(torch, kind, None)
        if module is not None and module.is_available():
            names += [f"{kind}:{i}" for i in range(module.device_count())]
    if torch.backends.mps.is_available():
        names.append("mps:0")
    return (*names, "cpu")


def open_device(spec: RunSpec, idle_beside_bytes: int | None = None) -> Device:
    """Open the device of `spec`, with its memory limit in force. Refuses what the device cannot do.

    Memory above `idle_beside_bytes`, an earlier session's, may be a dead process's still: opening waits for it.
    """
    opened = _device(spec.device)
    opened.check(spec)
    opened.open(idle_beside_bytes)
    opened.apply_limit(spec.memory_limit_bytes)
    check_reserve(spec.reserve_bytes, opened.limit_bytes)
    return opened


def facts_of(name: str) -> DeviceFacts:
    return _device(name).facts()


def listed() -> list[DeviceFacts]:
    """Return every device of this machine with its facts, each MIG instance as a device; `cpu` last."""
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


class Peaks(NamedTuple):
    """The most bytes since `start_from_clean`."""

    allocated_bytes: int | None = None
    reserved_bytes: int | None = None


class Memory(NamedTuple):
    """The memory of the whole device now.

    `used_bytes` is what the driver counts as used, with contexts, workspaces and other processes. `beside_bytes` is the
    part outside this process's allocator; `free_bytes` is what this process may still take.
    """

    used_bytes: int | None = None
    beside_bytes: int | None = None
    free_bytes: int | None = None


class Device(ABC):
    """The interface of a device for probes. The base class returns "not measured" for everything optional."""

    has_caching_allocator = False
    warm_up_seconds = 0.0
    """Seconds to train before the first timing of a process: clocks of accelerators rise, then fall under the load."""
    least_timed_seconds = 0.0
    """Seconds to time at least, so that the clocks are those of a long training."""

    def __init__(self, torch_device: torch.device) -> None:
        self.torch_device = torch_device
        self.limit_bytes = 0
        self.is_warm = False

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """The compute capability, (8, 0) for an A100; None for CPU, MPS, ROCm and XPU."""
        return None

    def check(self, spec: RunSpec) -> None:
        """Raise SpecError for a setting that this device does not support."""
        check_precision(spec.precision, self.name, self.compute_capability)

    def open(self, idle_beside_bytes: int | None) -> None:
        return

    def apply_limit(self, limit_bytes: int | None) -> None:
        """Limit the process to `limit_bytes`, or to the whole device."""
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
        """The device's whole memory."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until everything queued on the device is done."""

    @abstractmethod
    def start_from_clean(self) -> None:
        """Release cached blocks and reset the peaks."""

    def peaks(self) -> Peaks:
        return Peaks()

    def memory(self) -> Memory:
        return Memory()

    def allocator_retries(self) -> int | None:
        return None

    def conditions(self) -> dict[str, Any] | None:
        """Return current clocks, power, temperature and reasons for throttling."""
        return None

    def settings(self) -> dict[str, Any]:
        return {}

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
    warm_up_seconds = 1.0
    least_timed_seconds = 1.0

    def __init__(self, torch_device: torch.device) -> None:
        super().__init__(torch_device)
        self.module: Any = importlib.import_module(f"torch.{torch_device.type}")
        self.properties: Any = self.module.get_device_properties(torch_device)
        # read before this process has a context: the driver would list it among the others, and in containers under
        # a foreign process id
        self.driver_facts = nvml.driver_facts(pynvml, self._uuid()) if self._is_nvidia else {}
        self.opened_beside_bytes: int | None = None
        self.allowed_bytes = int(self.properties.total_memory)

    @property
    def name(self) -> str:
        return str(self.properties.name)

    @property
    def capacity_bytes(self) -> int:
        return int(self.properties.total_memory)

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        if not self._is_nvidia:
            return None
        return int(self.properties.major), int(self.properties.minor)

    def open(self, idle_beside_bytes: int | None) -> None:
        """Create the context, and wait until the memory of a dead process has been returned."""
        deadline = time.monotonic() + RELEASE_SECONDS
        while True:
            beside_bytes, refusal = self._beside_or_refusal()
            is_waiting = idle_beside_bytes is not None and time.monotonic() < deadline
            is_settled = refusal is None and (beside_bytes or 0) <= (idle_beside_bytes or 0) + SETTLED_BYTES
            if is_settled or not is_waiting:
                break
            time.sleep(0.1)
        if refusal is not None:
            held_bytes = self.driver_facts.get("foreign_used_bytes")
            held = f"other processes hold {format_bytes(held_bytes)} of" if held_bytes else "others fill its"
            raise DeviceUnavailable(
                f"{self.torch_device} has no room for this process's context ({refusal}): "
                f"{held} {format_bytes(self.capacity_bytes)}"
            )
        self.opened_beside_bytes = beside_bytes

    def _beside_or_refusal(self) -> tuple[int | None, str | None]:
        """Return what is in use outside this process's allocator, or why the process's context has no room."""
        try:
            self.module.set_device(self.torch_device)  # otherwise libraries make a second context on the first card
            return self.memory().beside_bytes, None
        except RuntimeError as exc:
            if classify(type(exc).__name__, str(exc)) is not Outcome.OUT_OF_MEMORY:
                raise
            return None, str(exc).partition("\n")[0]

    def apply_limit(self, limit_bytes: int | None) -> None:
        """Limit the allocator to `limit_bytes`, or to what was free at the start: some drivers go on in host memory.

        The fraction stays below 1.0, which this torch takes for "no limit".
        """
        super().apply_limit(limit_bytes)
        if not hasattr(self.module, "set_per_process_memory_fraction"):
            if limit_bytes is not None:
                raise SpecError("memory_limit_bytes", f"torch {torch.__version__} cannot limit {self.torch_device}")
            return
        room_bytes = self.capacity_bytes - (self.opened_beside_bytes or 0)
        if getattr(self.properties, "is_integrated", False):
            room_bytes = min(room_bytes, host.room_for_gpu_bytes())
            self.limit_bytes = min(self.limit_bytes, room_bytes)
        self.allowed_bytes = min(limit_bytes or room_bytes, room_bytes)
        fraction = min(self.allowed_bytes / self.capacity_bytes, math.nextafter(1.0, 0.0))
        self.module.set_per_process_memory_fraction(fraction, self.torch_device)

    def synchronize(self) -> None:
        self.module.synchronize(self.torch_device)

    def start_from_clean(self) -> None:
        self.module.empty_cache()
        self.module.reset_peak_memory_stats(self.torch_device)

    def peaks(self) -> Peaks:
        counted = (self.module.max_memory_allocated, self.module.max_memory_reserved)
        return Peaks(*(int(read(self.torch_device)) for read in counted))

    def memory(self) -> Memory:
        if not hasattr(self.module, "mem_get_info"):
            return Memory()
        try:
            free, total = self.module.mem_get_info(self.torch_device)
        except RuntimeError as exc:
            if "available free memory" not in str(exc):  # Intel GPUs whose driver does not report it
                raise
            return Memory()
        used, reserved = int(total) - int(free), int(self.module.memory_reserved(self.torch_device))
        return Memory(used, max(used - reserved, 0), min(int(free), self.allowed_bytes - reserved))

    def allocator_retries(self) -> int | None:
        retries = self.module.memory_stats(self.torch_device).get("num_alloc_retries")
        return None if retries is None else int(retries)

    def conditions(self) -> dict[str, Any] | None:
        return nvml.readings(pynvml, self._uuid()) if self._is_nvidia else None

    def settings(self) -> dict[str, Any]:
        return nvml.settings(pynvml, self._uuid()) if self._is_nvidia else {}

    def facts(self) -> DeviceFacts:
        capability = self.compute_capability
        return replace(
            super().facts(),
            uuid=self._uuid(),
            compute_capability=None if capability is None else f"{capability[0]}.{capability[1]}",
            beside_bytes=self.opened_beside_bytes,
            **self.driver_facts,
        )

    @property
    def _is_nvidia(self) -> bool:
        return self.torch_device.type == "cuda" and not torch.version.hip

    def _uuid(self) -> str | None:
        if not self._is_nvidia:
            return None
        confined_to = nvml.mig_uuid(os.environ.get("CUDA_VISIBLE_DEVICES"))
        uuid = getattr(self.properties, "uuid", None)
        return confined_to or (None if uuid is None else nvml.full_uuid(pynvml, str(uuid)))


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
        """Limit the allocator even if no limit is requested: its default is 1.7 x the recommended size, in swap."""
        super().apply_limit(limit_bytes)
        torch.mps.set_per_process_memory_fraction((limit_bytes or self.capacity_bytes) / self.capacity_bytes)

    def synchronize(self) -> None:
        torch.mps.synchronize()

    def start_from_clean(self) -> None:
        torch.mps.empty_cache()
        if HAS_PEAKS_OF_MPS:
            torch.accelerator.reset_peak_memory_stats()

    def peaks(self) -> Peaks:
        """Return the peaks of torch's heaps; the driver counts graphs, too, and only what is held now."""
        driver_bytes = int(torch.mps.driver_allocated_memory())
        if not HAS_PEAKS_OF_MPS:
            return Peaks(int(torch.mps.current_allocated_memory()), driver_bytes)
        allocated, reserved = torch.accelerator.max_memory_allocated(), torch.accelerator.max_memory_reserved()
        return Peaks(allocated, max(reserved, driver_bytes))


class Cpu(Device):
    """The host. Its memory limit is a budget on the bytes of live tensors, so that the boundary is exact."""

    @property
    def name(self) -> str:
        return host.cpu_model() or platform.processor() or platform.machine()

    @property
    def capacity_bytes(self) -> int:
        return host.memory_bytes()

    def apply_limit(self, limit_bytes: int | None) -> None:
        super().apply_limit(limit_bytes or min(CPU_DEFAULT_LIMIT_BYTES, self.capacity_bytes))
        host.guard_memory()

    def memory(self) -> Memory:
        return Memory(free_bytes=host.bytes_below_guard())

    def synchronize(self) -> None:
        """Do nothing: the CPU computes synchronously."""

    def start_from_clean(self) -> None:
        """Return what earlier probes left in the C library's heap to the system."""
        with contextlib.suppress(OSError, AttributeError):  # only glibc has it
            ctypes.CDLL(None).malloc_trim(0)
