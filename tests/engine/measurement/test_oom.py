"""Every form of out-of-memory is recognised, size limits are told apart, and nothing else is called either."""

import pytest

from engine.facts.result import Outcome
from engine.measurement.oom import classify, is_of_a_library
from engine.text.units import GIB

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
    ("RuntimeError", "HIPBLAS_STATUS_ALLOC_FAILED when calling hipblasCreate"),
    ("RuntimeError", "cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    ("RuntimeError", "NVML_SUCCESS == r INTERNAL ASSERT FAILED at CUDACachingAllocator.cpp:1131"),
    (
        "RuntimeError",
        "NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at CUDACachingAllocator.cpp",
    ),
    (
        "RuntimeError",
        "NVML_SUCCESS == DriverAPI::get()->nvmlDeviceGetHandleByPciBusId_v2_( pci_id, &nvml_device) INTERNAL",
    ),
    ("RuntimeError", "!handles_.at(i) INTERNAL ASSERT FAILED at CUDACachingAllocator.cpp:396"),
    ("RuntimeError", "Native API failed. UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"),
    (
        "RuntimeError",
        "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried",
    ),
    ("RuntimeError", "DefaultCPUAllocator: not enough memory: you tried to allocate 8589934592 bytes."),
    ("RuntimeError", "std::bad_alloc"),
    ("CapacityExceeded", "out of memory: the allocator reserved 5.0 GiB of a device that has 4.0 GiB"),
    ("RuntimeError", "CUDA driver error: out of memory"),
    ("RuntimeError", "Triton Error [CUDA]: out of memory"),
    ("RuntimeError", "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
]

# a full device says so, and so does a broken installation
AMBIGUOUS = [
    ("RuntimeError", "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"),
    ("RuntimeError", "CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasCreate(handle)`"),
    ("RuntimeError", "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"),
    ("RuntimeError", "GET was unable to find an engine to execute this computation"),
    ("RuntimeError", "Can't find nvmlDeviceGetNvLinkRemoteDeviceType: libnvidia-ml.so.1: undefined symbol"),
    ("RuntimeError", "Native API failed. UR error 40 UR_RESULT_ERROR_OUT_OF_RESOURCES"),
    ("RuntimeError", "could not create a primitive"),
    ("RuntimeError", "could not create a primitive descriptor iterator"),
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
    ("RuntimeError", "CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasSgemm(handle)`"),
    ("RuntimeError", "CUDA error: invalid argument"),
]


@pytest.mark.parametrize(("name", "text"), OUT_OF_MEMORY)
def test_it_is_out_of_memory(name, text):
    assert classify(name, text) is Outcome.OUT_OF_MEMORY


@pytest.mark.parametrize(("name", "text"), AMBIGUOUS)
def test_a_text_with_two_causes_is_out_of_memory_only_where_little_was_free(name, text):
    def outcome(free_gib: float | None, total_gib: int = 80) -> Outcome | None:
        free_bytes = None if free_gib is None else int(free_gib * GIB)
        return classify(name, text, free_bytes=free_bytes, total_bytes=total_gib * GIB)

    assert (outcome(0.2), outcome(3.9)) == (Outcome.OUT_OF_MEMORY, Outcome.OUT_OF_MEMORY)
    assert (outcome(4.1), outcome(78), outcome(2, total_gib=24), outcome(None)) == (None, None, None, None)


@pytest.mark.parametrize(("name", "text"), SIZE_LIMIT)
def test_it_is_a_size_limit_and_not_memory(name, text):
    assert classify(name, text) is Outcome.SIZE_LIMIT


@pytest.mark.parametrize(("name", "text"), NEITHER)
def test_it_is_neither(name, text):
    assert classify(name, text) is None


@pytest.mark.parametrize(("name", "text"), [*OUT_OF_MEMORY, *AMBIGUOUS, *SIZE_LIMIT])
def test_its_words_are_those_of_a_library_and_no_longer_where_a_script_adds_its_own(name, text):
    is_own = name in ("MemoryError", "BudgetExceeded", "CapacityExceeded")  # the last two are MemoryMark's
    assert is_of_a_library(text) is not is_own
    assert not is_of_a_library(f"patient alice: {text}")


def test_what_this_torch_raises_for_a_huge_cpu_tensor_is_out_of_memory():
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError) as raised:
        torch.empty(2**46, dtype=torch.uint8)
    assert classify(type(raised.value).__name__, str(raised.value)) is Outcome.OUT_OF_MEMORY
    assert is_of_a_library(str(raised.value))
