"""A host that ran out of its own memory proves nothing of a GPU."""

import pytest

from engine.measurement.oom import classify
from engine.results.host_memory import is_of_the_host
from engine.results.result import DeviceFacts, Outcome, Probe, Reason
from engine.search.boundary import boundary_of_search
from engine.search.unguided import Found
from engine.text.units import GIB

CARD = DeviceFacts("cuda:0", "cuda", "A card", 80 * GIB, limit_bytes=80 * GIB)
CPU = DeviceFacts("cpu", "cpu", "A processor", 80 * GIB, limit_bytes=80 * GIB)
ENDS = [
    ("Killed", "the kernel's out-of-memory killer ended it"),
    ("MemoryError", ""),
    ("_ArrayMemoryError", "Unable to allocate 12.0 GiB for an array"),
    ("RuntimeError", "[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"),
]


@pytest.mark.parametrize(("error_type", "message"), ENDS)
def test_the_hosts_memory_is_told_from_the_gpus_and_certifies_a_cpu_alone(error_type: str, message: str) -> None:
    refusal = Probe(17, Outcome.OUT_OF_MEMORY, fresh_process=True, error_type=error_type, error_message=message)
    probes = [Probe(16, Outcome.FITS, fresh_process=True), refusal]
    on_card, on_cpu = (boundary_of_search(Found(16, 17), probes, device) for device in (CARD, CPU))
    assert (on_card.certified, on_card.reason, on_card.largest_batch_size) == (False, Reason.ERROR, 16)
    assert (on_card.note or "").startswith("the host's memory ended, not the GPU's")
    assert on_cpu.certified
    assert error_type == "Killed" or classify(error_type, message) is Outcome.OUT_OF_MEMORY


def test_a_gpus_own_error_is_not_the_hosts() -> None:
    assert not is_of_the_host("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB.")
