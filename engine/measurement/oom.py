"""Decides from an exception's type, its text and the free memory: out of memory, a size limit, or something else.

Only the forms listed here count. Everything else is an unknown error: a wrong "out of memory" would move a
boundary. Sources: PyTorch's allocators (c10), cuBLAS, cuDNN, Triton, HIP, XPU, MPS, oneDNN; the table of forms is
checked by tests/engine/measurement/test_oom.py.
"""

from __future__ import annotations

import re

from ..facts.host_memory import HOST_TEXTS, HOST_TYPES
from ..facts.result import Outcome
from ..text.units import GIB

LITTLE_FREE_BYTES = GIB
LITTLE_FREE_FRACTION = 0.05

_MEMORY_TYPES = HOST_TYPES | {"OutOfMemoryError", "AcceleratorOutOfMemoryError", "BudgetExceeded", "CapacityExceeded"}

_MEMORY_TEXTS = (
    *HOST_TEXTS,
    "cuda out of memory",
    "hip out of memory",
    "xpu out of memory",
    "mps backend out of memory",
    "cuda error: out of memory",
    "cuda driver error: out of memory",  # expandable segments: the driver's own calls around cuMemMap
    "triton error [cuda]: out of memory",
    "hip error: out of memory",
    "cudaerrormemoryallocation",
    "hiperroroutofmemory",
    "cublas_status_alloc_failed",
    "cusolver_status_alloc_failed",
    "hipblas_status_alloc_failed",
    "rocblas_status_memory_error",
    "cudnn_status_alloc_failed",
    "cudnn_status_internal_error_device_allocation_failed",  # its name since cuDNN 9
    "miopenstatusallocfailed",
    # raised while composing the message: on MIG instances, and where NVML does not answer (containers, WSL)
    "nvml_success == r internal assert",
    "nvml_success == driverapi::get()->nvmlinit_v2_()",
    "nvml_success == driverapi::get()->nvmldevicegethandlebypcibusid_v2_(",
    "!handles_.at(i) internal assert",
    "ur_result_error_out_of_device_memory",
    "ur_result_error_out_of_host_memory",
)

# A full device and a broken installation raise the same errors: these count as memory only where little was free.
_AMBIGUOUS_TEXTS = (
    "cublas_status_not_initialized",  # cublasCreate could not get its workspace, or the library does not match
    "cublas_status_internal_error when calling `cublascreate",
    "cudnn_status_not_initialized",
    "unable to find an engine to execute this computation",  # cuDNN: no plan whose workspace can be had
    "can't find nvmldevicegetnvlinkremotedevicetype",  # raised while the allocator composes its message
    "ur_result_error_out_of_resources",
    "could not create a primitive",  # oneDNN; also "... primitive descriptor iterator"
)

_SIZE_TEXTS = (
    "canuse32bitindexmath",
    "int_max",
    "32-bit index",  # and "... indexing"
    "32 bit index",
    "int32 index",
    "int32 overflow",
    "too large for int32",
    "integer out of range",
    "value cannot be converted to type int without overflow",
    "invalid configuration argument",
    "invalid buffer size",  # MPS: one buffer above the device's maximum
    "mpsgraph does not support tensor dims larger than int_max",
    "exceeds the maximum number of elements",
    "storage size calculation overflowed",
)

_LIBRARY_LEADS = re.compile(
    r"\[enforce fail at |(?:cuda|hip|xpu|mps backend) out of memory|(?:cuda|hip|cudnn|miopen|cuda driver) error: |"
    r"native api failed\. |expected canuse32bitindexmath|input_?\.numel\(\) <= int_max|\w+ only supports 32-bit|"
    r"unable to allocate |get was unable to find an engine"
)


def is_of_a_library(message: str) -> bool:
    """Whether an error begins as those of torch, its libraries or NumPy do: a script may quote them in its own."""
    text = message.lower()
    return bool(_LIBRARY_LEADS.match(text)) or text.startswith((*_MEMORY_TEXTS, *_AMBIGUOUS_TEXTS, *_SIZE_TEXTS))


def classify(
    type_name: str, message: str, *, free_bytes: int | None = None, total_bytes: int | None = None
) -> Outcome | None:
    """Return OUT_OF_MEMORY, SIZE_LIMIT, or None for anything else, by the class name and text of an exception.

    `free_bytes` of `total_bytes` were left when it was raised; None: a text with two possible causes is unknown.
    """
    if type_name in _MEMORY_TYPES:
        return Outcome.OUT_OF_MEMORY
    text = message.lower()
    if any(known in text for known in _SIZE_TEXTS):
        return Outcome.SIZE_LIMIT
    if any(known in text for known in _MEMORY_TEXTS):
        return Outcome.OUT_OF_MEMORY
    little_bytes = max(LITTLE_FREE_BYTES, LITTLE_FREE_FRACTION * (total_bytes or 0))
    if free_bytes is not None and free_bytes < little_bytes and any(known in text for known in _AMBIGUOUS_TEXTS):
        return Outcome.OUT_OF_MEMORY
    return None
