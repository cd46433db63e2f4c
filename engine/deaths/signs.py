"""PURE: the words by which torch, its libraries, kernels and schedulers say how a training ended.

They are read in this order: a GPU that ran out explains killed ranks, and a killed rank a timeout.
"""

from __future__ import annotations

import re
from enum import StrEnum


class Cause(StrEnum):
    """Why a training died. Growth and a long batch are known of a watched training alone."""

    TOO_LARGE = "too_large"
    LOADING = "loading"
    IN_PIECES = "in_pieces"
    ANOTHER_PROCESS = "another_process"
    EVALUATION = "evaluation"
    SAVING = "saving"
    LATE = "late"
    GROWS = "grows"
    LONG_BATCH = "long_batch"
    HOST_MEMORY = "host_memory"
    WORKER_MEMORY = "worker_memory"
    DISK = "disk"
    DRIVER = "driver"
    COLLECTIVE = "collective"
    SCHEDULER = "scheduler"
    NOT_MEMORY = "not_memory"
    CANNOT_TELL = "cannot_tell"


def _any_of(*words: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile("|".join(words), re.MULTILINE | flags)


OUT_OF_DEVICE_MEMORY = _any_of(
    r"(?:cuda|hip|xpu|npu|musa|mps backend|gpu|device)[^\n]{0,24} out of memory",
    r"(?<!ray\.exceptions\.)OutOfMemoryError",
    *(r"CUDA_ERROR_OUT_OF_MEMORY", r"cudaErrorMemoryAllocation", r"hipErrorOutOfMemory", r"_STATUS_ALLOC_FAILED"),
    *(r"OUT_OF_DEVICE_MEMORY", r"Tried to allocate .{0,40}(?:GPU|capacity)"),
    *(r"total capacity; .{0,20} already allocated", r"OOM when allocating tensor"),
    flags=re.IGNORECASE,
)
OTHER_ENDS = (
    (Cause.NOT_MEMORY, _any_of(r"Too many open files")),
    (
        Cause.HOST_MEMORY,
        _any_of(
            *(r"(?i:oom[-_ ]?kill)", r"Out of memory: Kill", r"[Cc]group out of memory"),
            *(r"task \d+: Out Of Memory", r"\bOUT_OF_ME", r"TERM_MEMLIMIT"),
            *(r"mem \w+ exceeded limit", r"[Ee]xceeded (?:step |job |its )?memory"),
            r"(?<!shared )memory limit(?: at some point)?\b.{0,60}(?:kill|exceed|\.$)",
            *(r"low on (?:resource: )?memory", r"MemoryPressure", r"memory usage threshold of"),
            *(r"due to memory pressure", r"using all available RAM"),
            *(r"DefaultCPUAllocator: (?:can't allocate|not enough)", r"not enough memory: you tried"),
            *(r"Unable to allocate .{0,60} array", r"\bMemoryError\b", r"std::bad_alloc", r"Cannot allocate memory"),
        ),
    ),
    (
        Cause.WORKER_MEMORY,
        _any_of(
            *(r"insufficient shared memory", r"out of shared memory", r"killed by signal: (?:Bus error|Killed)"),
            *(r"Unexpected bus error", r"unable to write to file <?/torch_"),
            r"(?:/dev/shm|/torch_\w+>?).{0,40}No space left",
            # semaphores, too, are made in /dev/shm
            r"multiprocessing/synchronize\.py[^\n]*\n(?:[^\n]*\n){0,3}?[^\n]*No space left",
        ),
    ),
    (
        Cause.DRIVER,
        _any_of(
            *(r"illegal memory access", r"IllegalAddress", r"device-side assert", r"unspecified launch failure"),
            *(r"misaligned address", r"illegal instruction was encountered", r"\bXid\b", r"fallen off the bus"),
            *(r"uncorrectable (?:ECC|NVLink)", r"GPU is lost", r"determine the device handle"),
            *(r"_STATUS_EXECUTION_FAILED", r"_STATUS_INTERNAL_ERROR", r"_STATUS_NOT_INITIALIZED"),
            *(r"(?:CUDA|HIP) (?:runtime )?error", r"cuda runtime error \(", r"driver/library version mismatch"),
            *(r"driver shutting down", r"Memory access fault by GPU"),
        ),
    ),
    (
        Cause.SCHEDULER,
        _any_of(
            *(r"DUE TO (?:TIME LIMIT|PREEMPTION)", r"CANCELLED AT", r"walltime .{0,20}exceeded", r"Job has timed out"),
            *(r"this job is (?:preempted|timed-out)", r"termination is imminent", r"Node failure on"),
            *(r"Job deleted at request of", r"Job credential expired"),
        ),
    ),
    (
        Cause.COLLECTIVE,
        _any_of(
            *(r"collective operation timeout", r"Watchdog caught", r"detected by watchdog", r"nccl\w*Error\b"),
            *(r"timed out in blocking wait", r"NCCL (?:error|timeout|WARN)", r"DistBackendError"),
            *(r"initializing process group", r"gloo/transport", r"Timeout at NCCL work"),
            r"distributed_c10d\.py[^\n]*\n(?:[^\n]*\n){0,3}?[^\n]*Connection (?:reset|refused|closed)",
        ),
    ),
    (
        Cause.DISK,
        _any_of(
            *(r"No space left on device", r"StorageFull", r"[Dd]isk quota exceeded", r"low on resource: ephemeral")
        ),
    ),
    (
        Cause.CANNOT_TELL,
        _any_of(
            *(r"SIGKILL", r"SIGTERM", r"SIGHUP", r"exit ?codes?\s*:? ?-?\d", r"return code = -?\d", r"got signal"),
            *(r"death signal", r"exited unexpectedly", r"killed by signal", r"^Killed", r"exceeded K8s pod memory"),
            *(r"items of ancdata", r"file write failed", r"unexpected pos \d", r"write\(\): fd"),
            r"unable to open shared memory object",
            *(r"ChildFailedError", r"INTERNAL ASSERT FAILED"),
        ),
    ),
)
ERROR = _any_of(r"^(?:\[rank\d+\]:? ?)?[\w.]*(?:Error|Exception|Exit|Interrupt)\b")
