"""Out of memory, a size limit, or something else? Decided from an exception's type and text alone.

Only what is listed here counts. Anything else is raised on as what it is: a wrong "out of memory" would
move a boundary. Sources: PyTorch's allocators (c10), cuBLAS, cuDNN, HIP, XPU, MPS, oneDNN; the table of
forms is checked by tests/engine/test_oom.py.
"""

from __future__ import annotations

from engine.result import Outcome

_MEMORY_TYPES = frozenset({"OutOfMemoryError", "AcceleratorOutOfMemoryError", "MemoryError", "BudgetExceeded"})

_MEMORY_TEXTS = (
    "cuda out of memory",
    "hip out of memory",
    "xpu out of memory",
    "mps backend out of memory",
    "cuda error: out of memory",
    "hip error: out of memory",
    "cudaerrormemoryallocation",
    "hiperroroutofmemory",
    "cublas_status_alloc_failed",
    "cublas_status_not_initialized",  # cublasCreate could not get its workspace
    "cusolver_status_alloc_failed",
    "hipblas_status_alloc_failed",
    "rocblas_status_memory_error",
    "cudnn_status_alloc_failed",
    "miopenstatusallocfailed",
    "unable to find an engine to execute this computation",  # cuDNN: no plan whose workspace can be had
    "nvml_success == r internal assert",  # raised while composing the message, on MIG instances
    "!handles_.at(i) internal assert",
    "ur_result_error_out_of_device_memory",
    "ur_result_error_out_of_host_memory",
    "ur_result_error_out_of_resources",
    "defaultcpuallocator: can't allocate memory",
    "defaultcpuallocator: not enough memory",
    "could not create a primitive",  # oneDNN; also "... primitive descriptor iterator"
    "could not create a memory object",
    "std::bad_alloc",
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


def classify(type_name: str, message: str) -> Outcome | None:
    """OUT_OF_MEMORY, SIZE_LIMIT, or None for anything else. `type_name` is the exception's class name."""
    if type_name in _MEMORY_TYPES:
        return Outcome.OUT_OF_MEMORY
    text = message.lower()
    if any(known in text for known in _SIZE_TEXTS):
        return Outcome.SIZE_LIMIT
    if any(known in text for known in _MEMORY_TEXTS):
        return Outcome.OUT_OF_MEMORY
    return None
