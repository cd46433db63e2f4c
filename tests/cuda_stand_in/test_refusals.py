"""Drivers that refuse, in every place: what is memory is an outcome, and everything else is a sentence."""

import pytest

from engine.errors import DeviceUnavailable, EngineError, WorkerFailed, WorkloadFailed
from engine.facts.result import Outcome, Reason
from engine.text.units import GIB
from tests.cuda_stand_in.cards import WarmEngine

pytestmark = pytest.mark.each_value  # a fraction of a second each

CARD = {"memory": 4 * GIB}
SHORT = {"sequence_length": 128, "start_batch_size": 64}
HALF_FULL = f"above={2 * GIB}"
UNKNOWN = 999

OPENING = {
    "an old driver": "cuInit:35",
    "no card": "cuInit:100",
    "another driver's library": "cuInit:803",
    "no room for a context": "cuDevicePrimaryCtxRetain:2",
    "a card in use by one process alone": "cuDevicePrimaryCtxRetain:46",
    "an unknown error of the context": f"cuDevicePrimaryCtxRetain:{UNKNOWN}",
    "no properties": f"cudaGetDeviceProperties:{UNKNOWN}",
    "no free memory told": f"cudaMemGetInfo:{UNKNOWN}",
}

ENTRY_POINTS = (
    *("cudaGetDeviceCount", "cudaSetDevice", "cudaGetDevice", "cudaDeviceGetAttribute", "cudaMalloc", "cudaFree"),
    *("cudaMemcpyAsync", "cudaMemsetAsync", "cudaLaunchKernel", "cudaStreamSynchronize", "cudaDeviceSynchronize"),
    *("cudaFuncGetAttributes", "cudaStreamIsCapturing", "cudaEventCreateWithFlags", "cudaStreamCreateWithPriority"),
    *("cublasCreate_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasSgemm_v2", "cublasLtMatmul"),
    *(
        "cudaGetDriverEntryPointByVersion",
        "cuDevicePrimaryCtxGetState",
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    ),
)

OUT_OF_MEMORY = {
    "the allocator's malloc": f"cudaMalloc:2:{HALF_FULL}",
    "cuBLAS without a workspace": f"cublasCreate_v2:3:{HALF_FULL}",
    "a kernel without local memory": f"cudaLaunchKernel:2:{HALF_FULL}",
}

NVML = {
    "not loaded": "nvmlInit_v2:9",
    "does not list processes": "nvmlDeviceGetComputeRunningProcesses_v3:3;nvmlDeviceGetComputeRunningProcesses:3",
    "forbids the list": "nvmlDeviceGetComputeRunningProcesses_v3:4;nvmlDeviceGetGraphicsRunningProcesses_v3:4",
    "does not know the card": "nvmlDeviceGetHandleByUUID:6;nvmlDeviceGetHandleByPciBusId_v2:6",
    "tells no memory": "nvmlDeviceGetMemoryInfo:3;nvmlDeviceGetMemoryInfo_v2:3",
    "tells no clocks": "nvmlDeviceGetClockInfo:3;nvmlDeviceGetPowerUsage:3;nvmlDeviceGetCurrentClocksEventReasons:3",
}


@pytest.mark.parametrize("fail", OPENING.values(), ids=OPENING)
def test_a_card_that_cannot_be_opened_is_unavailable(warm: WarmEngine, fail: str) -> None:
    with pytest.raises(DeviceUnavailable) as refused:
        warm.probe({**CARD, "fail": fail}, 16, sequence_length=32)
    assert refused.value.exit_status == 4
    assert "Traceback" not in str(refused.value)


def test_a_card_in_exclusive_mode_that_somebody_uses_is_unavailable(warm: WarmEngine) -> None:
    warm.fresh(**CARD, exclusive=1)
    assert warm.cards.tenant().open_context() == 0
    with warm.cards.in_force(), pytest.raises(DeviceUnavailable, match="busy"):
        warm.worker.open()


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("when", ["", f":{HALF_FULL}"], ids=["at once", "half full"])
def test_wherever_the_driver_fails_the_engine_says_so(warm: WarmEngine, entry: str, when: str) -> None:
    fail = f"{entry}:{UNKNOWN}{when}"
    assert said_of(warm, fail) in (Outcome.FITS, Outcome.ERROR, DeviceUnavailable, WorkloadFailed, "crash of PyTorch")


def said_of(warm: WarmEngine, fail: str) -> object:
    """The outcome of a probe, or the class of the error; PyTorch itself aborts where a destructor meets an error."""
    try:
        return warm.probe({**CARD, "fail": fail}, 1000, sequence_length=128).outcome
    except WorkerFailed as error:
        return "crash of PyTorch" if "SIGABRT" in str(error) else str(error)
    except EngineError as error:
        return type(error)


@pytest.mark.parametrize("fail", OUT_OF_MEMORY.values(), ids=OUT_OF_MEMORY)
def test_a_driver_that_is_full_in_the_middle_is_an_out_of_memory(warm: WarmEngine, fail: str) -> None:
    probe = warm.probe({**CARD, "fail": fail}, 1000, sequence_length=128)
    assert probe.outcome is Outcome.OUT_OF_MEMORY


def test_a_broken_cublas_is_no_certificate(warm: WarmEngine) -> None:
    with pytest.raises(WorkloadFailed, match="CUBLAS_STATUS_NOT_INITIALIZED"):
        warm.measure({**CARD, "fail": "cublasCreate_v2:1"}, **SHORT)


def test_an_unknown_error_above_a_size_that_trained_ends_the_search_there(warm: WarmEngine) -> None:
    result = warm.measure({**CARD, "fail": f"cudaLaunchKernel:700:{HALF_FULL}"}, **SHORT)
    assert not result.boundary.certified
    assert result.boundary.reason == Reason("error")
    assert result.boundary.largest_batch_size
    assert "illegal memory access" in (result.boundary.refusal or "")


def test_a_launch_that_is_too_large_is_a_limit_of_size(warm: WarmEngine) -> None:
    result = warm.measure({**CARD, "fail": f"cudaLaunchKernel:9:{HALF_FULL}"}, **SHORT)
    assert not result.boundary.certified
    assert result.boundary.reason is Reason.SIZE_LIMIT
    assert result.boundary.largest_batch_size


@pytest.mark.parametrize("fail", NVML.values(), ids=NVML)
def test_what_nvml_does_not_say_changes_no_boundary(warm: WarmEngine, fail: str) -> None:
    told = warm.probe(CARD, 1290, sequence_length=128)
    untold = warm.probe({**CARD, "fail": fail}, 1290, sequence_length=128)
    assert told.outcome is untold.outcome is Outcome.OUT_OF_MEMORY
    assert told.peak_allocated_bytes == untold.peak_allocated_bytes
