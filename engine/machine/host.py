"""The host's processor and memory, and a guard against a probe that exhausts its memory. Does not load torch."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from ..text.units import MIB

HOST_RESERVE_BYTES = 512 * MIB
SHARED_RESERVE_FRACTION, SHARED_RESERVE_BYTES = 0.05, 1024 * MIB
"""What a GPU without memory of its own leaves the host, at least: an assumption. A host without memory stands still."""


def lines_of(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def cpu_model() -> str | None:
    lines = lines_of(Path("/proc/cpuinfo"))
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def memory_bytes() -> int:
    """Return the physical memory, or the control group's limit where that is lower."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return physical
    return min(physical, int(limit)) if limit.isdigit() else physical


def available_bytes() -> int:
    """Return the memory that new processes may take; all of it where the kernel does not tell."""
    try:
        return min(_kib_field("/proc/meminfo", "MemAvailable"), memory_bytes())
    except OSError:
        return memory_bytes()


def room_for_gpu_bytes() -> int:
    """Return what a GPU that shares the host's memory may take of it now."""
    reserve_bytes = max(int(SHARED_RESERVE_FRACTION * memory_bytes()), SHARED_RESERVE_BYTES)
    return max(available_bytes() - reserve_bytes, 0)


def guard_memory() -> None:
    """Limit this process to the available memory of the host, so that a probe cannot exhaust it.

    The guard is far above any budget: a fragmented heap holds two or three times the bytes of its tensors.
    """
    try:
        resource = importlib.import_module("resource")
        guard = (
            _kib_field("/proc/self/status", "VmData") + _kib_field("/proc/meminfo", "MemAvailable") - HOST_RESERVE_BYTES
        )
        resource.setrlimit(resource.RLIMIT_DATA, (guard, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    except (ImportError, OSError, ValueError, AttributeError):
        return  # not Linux, or not allowed: the budget still works without the guard


def bytes_below_guard() -> int | None:
    """Return what this process may still take before the guard refuses it; None where there is no guard."""
    try:
        resource = importlib.import_module("resource")
        guard = resource.getrlimit(resource.RLIMIT_DATA)[0]
        return None if guard == resource.RLIM_INFINITY else guard - _kib_field("/proc/self/status", "VmData")
    except (ImportError, OSError, ValueError, AttributeError):
        return None


def _kib_field(path: str, key: str) -> int:
    """Return a figure of a /proc file given in kB, as bytes."""
    lines = Path(path).read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))


def oom_kills() -> int:
    """Return how many processes the kernel killed for memory, in this control group if any; 0 where not reported.

    It is the evidence that a SIGKILL was an out-of-memory; on a shared host others are killed, too.
    """
    group = next((line[3:] for line in lines_of(Path("/proc/self/cgroup")) if line.startswith("0::")), "")
    lines = lines_of(Path(f"/sys/fs/cgroup{group}/memory.events")) or lines_of(Path("/proc/vmstat"))
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
