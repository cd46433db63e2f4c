"""Few starts find the exact boundary, on memory curves of every kind."""

import random
from statistics import median

import pytest

from engine.search.unguided import Found
from engine.tune.next_size import Start, next_size
from tests.engine.synthetic_devices import KINDS, Device, make_device

LIMITS = {"first": 16, "maximum": 2**20}


def search(device: Device, *, knows_refused: bool = False) -> tuple[Found, list[Start]]:
    """Search the whole way. A CPU's refused size has run to its end: its memory is known."""
    starts: list[Start] = []
    following = {**LIMITS, "memory_bytes": device.limit_bytes, "measures_refused": knows_refused}
    while not isinstance(step := next_size(starts, **following), Found):
        assert step not in [s.batch_size for s in starts]
        fits = device.fits(step)
        memory = device.memory(step) if fits or knows_refused else None
        starts.append(Start(step, fits, memory, device.memory(0)))
    return step, starts


def devices(kind: str, count: int = 150) -> list[Device]:
    rng = random.Random(20_261_122)
    return [make_device(rng, kind) for _ in range(count)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("knows_refused", [True, False])
def test_the_boundary_is_exact_on_every_curve(kind: str, knows_refused: bool) -> None:
    for device in devices(kind):
        found, _ = search(device, knows_refused=knows_refused)
        assert found.refused == found.largest + 1
        assert device.boundary in (None, found.largest)


def test_a_straight_line_takes_five_starts_mostly_and_never_more_than_six() -> None:
    counts = [len(search(device)[1]) for device in devices("affine")]
    assert median(counts) <= 5
    assert max(counts) <= 6


@pytest.mark.parametrize(("kind", "mostly", "most"), [("affine", 4, 5), ("convex", 5, 9)])
def test_fewer_starts_are_needed_where_refused_sizes_are_known(kind: str, mostly: int, most: int) -> None:
    counts = [len(search(device, knows_refused=True)[1]) for device in devices(kind)]
    assert median(counts) <= mostly
    assert max(counts) <= most


def test_the_search_begins_with_the_size_the_user_knows_and_not_with_batch_1() -> None:
    assert next_size([], memory_bytes=100, first=16, maximum=1_000) == 16
    assert next_size([], memory_bytes=100, first=16, maximum=4) == 4


def test_a_first_size_that_is_refused_leads_down_to_batch_1() -> None:
    starts = [Start(16, False), Start(4, False), Start(1, False)]
    sizes = [next_size(starts[:n], memory_bytes=10, **LIMITS) for n in range(4)]
    assert sizes == [16, 4, 1, Found(0, 1)]


def test_the_search_ends_at_the_largest_size_allowed() -> None:
    starts = [Start(16, True, 20, 4), Start(32, True, 36, 4)]
    assert next_size(starts, memory_bytes=1_000_000, first=16, maximum=32) == Found(32, None)
