"""A memory limit is kept to the byte, by the allocator itself."""

import json

import pytest

from engine.results.result import Probe
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
from engine.spec import RunSpec

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
