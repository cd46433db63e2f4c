"""A memory limit is kept to the byte, and what filled the card at a refusal is counted to the byte."""

import json
from pathlib import Path

import pytest

from engine.facts.memory_breakdown import ACTIVATIONS, PARAMETERS, MemoryBreakdown, by_kind
from engine.facts.result import Probe
from engine.text.units import GIB, MIB
from tests.cuda_stand_in.cards import CONTEXT_BYTES, Cards, WarmEngine

CAPACITY_BYTES = 4 * GIB
LIMITS = (
    GIB,
    GIB + 1,
    GIB + 2 * MIB - 1,
    GIB + 2 * MIB,
    CAPACITY_BYTES // 3,
    CAPACITY_BYTES - CONTEXT_BYTES,
    CAPACITY_BYTES,
)

# opens the card under each limit in a fork of its own and takes large blocks of 2 MiB until it is refused
FILL = """
import json, os, sys
import torch
from engine.measurement.device import open_device
from engine.settings.spec import RunSpec

def fill(limit):
    device = open_device(RunSpec("bert-tiny", device="cuda", memory_limit_bytes=limit))
    held = []
    try:
        while True:
            held.append(torch.empty(2 << 20, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        return torch.cuda.memory_reserved()

for limit in json.loads(sys.argv[1]):
    if os.fork() == 0:
        print(json.dumps([limit, fill(limit)]), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def filled(built: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[int | None, int]:
    """What the allocator could reserve under each limit, and under none."""
    cards = Cards(tmp_path_factory.mktemp("limits") / "cards", built)
    cards.set(memory=CAPACITY_BYTES)
    done = cards.python(FILL, json.dumps([*LIMITS, None]))
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.each_value
@pytest.mark.parametrize("limit_bytes", LIMITS)
def test_the_allocator_takes_every_block_below_the_limit_and_none_above(filled: dict, limit_bytes: int) -> None:
    room_bytes = min(limit_bytes, CAPACITY_BYTES - CONTEXT_BYTES)
    assert filled[limit_bytes] <= room_bytes
    block_bytes = 20 * MIB  # what the allocator asks the driver for at a time
    assert filled[limit_bytes] > room_bytes - block_bytes


def test_without_a_limit_the_card_is_the_limit(filled: dict) -> None:
    assert filled[None] <= CAPACITY_BYTES - CONTEXT_BYTES


def test_a_size_trains_within_its_own_peak_and_not_below_what_it_allocates(warm: WarmEngine) -> None:
    def probe_at(limit_bytes: int | None) -> Probe:
        return warm.probe({"memory": CAPACITY_BYTES}, 100, sequence_length=128, memory_limit_bytes=limit_bytes)

    free = probe_at(None)
    assert free.peak_reserved_bytes is not None
    assert free.peak_allocated_bytes is not None
    tight = probe_at(free.peak_reserved_bytes)
    assert tight.fits
    assert (tight.peak_reserved_bytes or 0) <= free.peak_reserved_bytes
    assert not probe_at(free.peak_allocated_bytes - 1).fits


CARD = {"memory": 4 * GIB}
LIMIT_BYTES = 112 * MIB
SHORT = {"sequence_length": 64, "memory_limit_bytes": LIMIT_BYTES}


@pytest.fixture(scope="module")
def refused(warm: WarmEngine) -> MemoryBreakdown:
    return warm.explain(CARD, 64, **SHORT)


def test_the_entries_are_what_the_allocator_had_allocated_when_it_refused(refused: MemoryBreakdown) -> None:
    assert refused.moment == "refusal"
    assert sum(entry.size_bytes for entry in refused.entries) == refused.total_bytes
    assert refused.cached_bytes is not None
    reserved_bytes = refused.total_bytes + refused.cached_bytes
    assert reserved_bytes % (2 * MIB) == 0
    assert reserved_bytes <= LIMIT_BYTES < reserved_bytes + (refused.request.size_bytes or 0) + 20 * MIB


def test_the_refused_request_is_named_by_module_and_phase(refused: MemoryBreakdown) -> None:
    assert refused.request.phase in ("forward", "backward")
    assert (refused.request.module or "").startswith(("bert.", "classifier"))
    assert refused.request.size_bytes


def test_activations_are_those_that_autograd_saved_before_the_refusal(refused: MemoryBreakdown) -> None:
    kinds = by_kind(refused)
    assert kinds[ACTIVATIONS] > kinds[PARAMETERS] >= 4 * 4_386_178
    assert "unattributed" not in kinds
    assert sum(e.size_bytes for e in refused.entries if e.phase == "forward") >= kinds[ACTIVATIONS]


def test_the_backward_pass_in_its_own_thread_is_attributed_too(warm: WarmEngine) -> None:
    found = warm.explain(CARD, 64, sequence_length=64)
    assert found.moment == "peak"
    assert found.request.phase == "backward"
    temporaries = [entry for entry in found.entries if (entry.kind, entry.phase) == ("temporaries", "backward")]
    of_layers = sum(entry.size_bytes for entry in temporaries if (entry.module or "").startswith("bert."))
    assert of_layers >= 0.99 * sum(entry.size_bytes for entry in temporaries) > 0


def test_fragmentation_of_a_peak_is_not_known(warm: WarmEngine) -> None:
    assert warm.explain(CARD, 2, sequence_length=16).cached_bytes is None


SHARED = """
import json
from engine.machine import host
from engine.measurement.device import open_device
from engine.settings.spec import RunSpec

device = open_device(RunSpec("bert-tiny", device="cuda"))
print(json.dumps([device.capacity_bytes, device.allowed_bytes, device.limit_bytes, host.available_bytes()]))
"""


def test_a_card_that_shares_the_hosts_memory_leaves_the_host_a_reserve(built: dict[str, str], tmp_path: Path) -> None:
    cards = Cards(tmp_path / "cards", built)
    cards.set(memory=2**40, integrated=1)
    done = cards.python(SHARED)
    assert done.returncode == 0, done.stderr
    capacity_bytes, allowed_bytes, limit_bytes, available_bytes = json.loads(done.stdout)
    assert limit_bytes == allowed_bytes < available_bytes - GIB // 2 < capacity_bytes
