"""Every form of out-of-memory is recognised, size limits are told apart, and nothing else is called either."""

import pytest

from engine.oom import classify
from engine.result import Outcome

OUT_OF_MEMORY = [
    ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.25 GiB. GPU 0 has a total capacity of 39.39 GiB"),
    ("OutOfMemoryError", "HIP out of memory. Tried to allocate 20.00 MiB"),
    ("OutOfMemoryError", "XPU out of memory. Tried to allocate 1024.00 MiB."),
    ("MemoryError", ""),
    ("BudgetExceeded", "out of memory: the peak of step 1 is 530.0 MiB"),
    ("RuntimeError", "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
    ("AcceleratorError", "CUDA error: out of memory"),
    ("RuntimeError", "HIP error: out of memory"),
    ("RuntimeError", "HIP out of memory. Tried to allocate 2 GiB"),
    (
        "RuntimeError",
        "MPS backend out of memory (MPS allocated: 9.05 GB, max allowed: 9.07 GB)",
    ),
    ("RuntimeError", "XPU out of memory, please use `empty_cache` to release all unoccupied cached memory."),
    ("RuntimeError", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ("RuntimeError", "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"),
    ("RuntimeError", "HIPBLAS_STATUS_ALLOC_FAILED when calling hipblasCreate"),
    ("RuntimeError", "cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    ("RuntimeError", "GET was unable to find an engine to execute this computation"),
    ("RuntimeError", "NVML_SUCCESS == r INTERNAL ASSERT FAILED at CUDACachingAllocator.cpp:1131"),
    ("RuntimeError", "!handles_.at(i) INTERNAL ASSERT FAILED at CUDACachingAllocator.cpp:396"),
    ("RuntimeError", "Native API failed. UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"),
    ("RuntimeError", "Native API failed. UR error 40 UR_RESULT_ERROR_OUT_OF_RESOURCES"),
    (
        "RuntimeError",
        "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried",
    ),
    ("RuntimeError", "DefaultCPUAllocator: not enough memory: you tried to allocate 8589934592 bytes."),
    ("RuntimeError", "could not create a primitive"),
    ("RuntimeError", "could not create a primitive descriptor iterator"),
    ("RuntimeError", "std::bad_alloc"),
]

SIZE_LIMIT = [
    ("RuntimeError", "input_.numel() <= INT_MAX INTERNAL ASSERT: canUse32BitIndexMath"),
    ("RuntimeError", "Expected canUse32BitIndexMath(input) && canUse32BitIndexMath(output) to be true"),
    ("RuntimeError", "nll_loss2d_forward_out_frame only supports 32-bit indexing"),
    ("RuntimeError", "CUDA error: invalid configuration argument"),
    ("RuntimeError", "integer out of range"),
    ("RuntimeError", "Invalid buffer size: 36.00 GiB"),
    ("RuntimeError", "MPSGraph does not support tensor dims larger than INT_MAX"),
    ("RuntimeError", "Storage size calculation overflowed with sizes=[99999999, 3, 224, 224]"),
]

NEITHER = [
    ("RuntimeError", "CUDA error: an illegal memory access was encountered"),
    ("RuntimeError", "NCCL error: unhandled system error; ncclSystemError: System call (e.g. socket, malloc) failed"),
    ("RuntimeError", "CUDA error: device-side assert triggered"),
    ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (16x128 and 768x2)"),
    ("RuntimeError", "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
    ("ValueError", "Expected input batch_size (16) to match target batch_size (8)."),
    ("KeyError", "'memory'"),
    ("RuntimeError", ""),
]


@pytest.mark.parametrize(("name", "text"), OUT_OF_MEMORY)
def test_it_is_out_of_memory(name, text):
    assert classify(name, text) is Outcome.OUT_OF_MEMORY


@pytest.mark.parametrize(("name", "text"), SIZE_LIMIT)
def test_it_is_a_size_limit_and_not_memory(name, text):
    assert classify(name, text) is Outcome.SIZE_LIMIT


@pytest.mark.parametrize(("name", "text"), NEITHER)
def test_it_is_neither(name, text):
    assert classify(name, text) is None


def test_what_this_torch_raises_for_a_huge_cpu_tensor_is_out_of_memory():
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError) as raised:
        torch.empty(2**46, dtype=torch.uint8)
    assert classify(type(raised.value).__name__, str(raised.value)) is Outcome.OUT_OF_MEMORY
