"""The search finds the exact boundary on every memory curve, in few probes, and what proves nothing."""

import math
import random
from statistics import median

import pytest

from engine.facts.host_memory import is_of_the_host
from engine.facts.result import DeviceFacts, Outcome, Point, Probe, Reason
from engine.measurement.oom import classify
from engine.search.boundary import boundary_of_search
from engine.search.reserve import edge_size, sizes_with_reserve
from engine.search.stillness import MOST_STEPS, Watched, has_fallen, is_more, is_rising, steps_to_watch
from engine.search.unguided import Found, SearchLimits, Trial, Try, curve_sizes, decide, next_soak_size
from engine.text.units import GIB
from tests.engine import synthetic_devices
from tests.engine.synthetic_devices import KINDS, Device, make_device


def search(device: Device, maximum: int = 2**20, start: int = 16) -> tuple[Found, list[Trial]]:
    return synthetic_devices.search(
        device, lambda trials: decide(trials, SearchLimits(device.limit_bytes, start, maximum))
    )


@pytest.fixture(scope="module")
def searches() -> dict[str, list[tuple[Device, Found, list[Trial]]]]:
    rng = random.Random(20_261_121)
    devices = {kind: [make_device(rng, kind) for _ in range(400)] for kind in KINDS}
    return {kind: [(device, *search(device)) for device in made] for kind, made in devices.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_is_exact_and_both_sizes_of_the_certificate_were_executed(searches, kind):
    for device, found, trials in searches[kind]:
        assert found.refused == found.largest + 1
        assert device.boundary in (found.largest, None)
        assert found.largest == 0 or any(t.fits and t.batch_size == found.largest for t in trials)
        assert any(not t.fits and t.fresh_process and t.batch_size == found.refused for t in trials)


@pytest.mark.parametrize("kind", KINDS)
def test_no_search_takes_more_than_four_and_two_log2_probes(searches, kind):
    for _, found, trials in searches[kind]:
        assert len(trials) <= 4 + 2 * math.log2(max(found.largest, 1)), trials


@pytest.mark.parametrize(("kind", "probes", "refusals"), [("affine", 5, 1), ("convex", 7, 2)])
def test_a_smooth_curve_takes_a_median_of_seven_probes_and_two_refusals_at_most(searches, kind, probes, refusals):
    counts = [(len(trials), sum(not t.fits for t in trials)) for _, _, trials in searches[kind]]
    assert median(count for count, _ in counts) <= probes
    assert median(count for _, count in counts) <= refusals


@pytest.mark.parametrize("kind", ["steps", "noise", "noisy boundary"])
def test_a_rough_curve_takes_a_median_of_three_refusals_at_most(searches, kind):
    assert median(sum(not t.fits for t in trials) for _, _, trials in searches[kind]) <= 3


@pytest.mark.parametrize("boundary", range(70))
def test_every_small_boundary_is_found_within_the_bound(boundary):
    device = Device(lambda size: 1000 + 10 * size, lambda size: size <= boundary, 1005 + 10 * boundary, boundary)
    found, trials = search(device)
    assert found == Found(boundary, boundary + 1)
    assert len(trials) <= 4 + 2 * math.log2(max(boundary, 1))


def test_a_straight_line_needs_one_refusal():
    device = Device(lambda size: 1000 + 10 * size, lambda size: size <= 528, 1000 + 5285, 528)
    _, trials = search(device)
    assert [(t.batch_size, t.fits) for t in trials] == [(1, True), (16, True), (128, True), (528, True), (529, False)]


def test_the_maximum_ends_the_search_without_a_refusal():
    device = Device(lambda size: 1000 + size, lambda size: True, 10**9, None)
    found, trials = search(device, maximum=100)
    assert found == Found(100, None)
    assert max(t.batch_size for t in trials) == 100


def test_a_refusal_in_a_used_process_is_asked_again_in_a_fresh_one():
    trials = [Trial(1, True, 10), Trial(2, False, fresh_process=False)]
    assert decide(trials, SearchLimits(100)) == Try(2, fresh_process=True)


def test_a_refusal_that_a_fresh_process_disproves_is_dropped():
    trials = [Trial(8, True, 80), Trial(9, False), Trial(9, True, 90, fresh_process=True)]
    step = decide([Trial(1, True, 10), *trials], SearchLimits(1000, maximum=20))
    assert isinstance(step, Try)
    assert step.batch_size > 9


def test_memory_that_nobody_could_read_still_leads_to_the_boundary():
    device = Device(lambda size: 0, lambda size: size <= 300, 0, 300)
    assert search(device)[0] == Found(300, 301)


def soak(survives: int, largest: int) -> tuple[int, list[int]]:
    trials: list[Trial] = []
    while (size := next_soak_size(trials, largest)) is not None:
        trials.append(Trial(size, size <= survives))
    return max((t.batch_size for t in trials if t.fits), default=0), [t.batch_size for t in trials]


def test_a_boundary_that_survives_is_soaked_once():
    assert soak(survives=528, largest=528) == (528, [528])


@pytest.mark.parametrize("survives", [0, 1, 13, 500, 520, 527])
def test_a_boundary_that_fails_its_soak_moves_down_to_the_exact_survivor(survives):
    found, sizes = soak(survives, largest=528)
    assert found == survives
    assert {survives + 1} <= set(sizes)
    assert len(sizes) == len(set(sizes))


def test_the_curve_fills_the_widest_gaps_with_at_most_six_sizes():
    assert curve_sizes([1, 16, 128, 528], 528) == [2, 4, 8, 32, 64, 256]
    assert curve_sizes([1, 2, 3], 3) == []
    assert len(curve_sizes([1, 100_000], 100_000)) == 6


def points(memory: dict[int, int | None]) -> dict[int, Point]:
    return {size: Point(size, None, None, taken, None, taken) for size, taken in memory.items()}


def test_a_size_keeps_the_reserve_up_to_the_last_byte_of_what_is_allowed():
    assert sizes_with_reserve(points({1: 100, 8: 950, 9: 951}), 1000, 0.05) == {1, 8}


def test_where_none_keeps_it_sizes_that_take_as_little_as_the_smallest_are_as_good():
    assert sizes_with_reserve(points({1: 970, 16: 975, 64: 999}), 1000, 0.05) == {1, 16}


def test_the_edge_is_where_the_line_between_two_measured_sizes_meets_what_is_allowed():
    assert edge_size(points({1: 110, 50: 600, 99: 1090}), 1000, 0.05) == 85


def test_no_edge_is_looked_for_where_the_largest_keeps_the_reserve_or_a_measured_size_is_near():
    assert edge_size(points({1: 110, 50: 600}), 1000, 0.05) is None
    assert edge_size(points({500: 948, 600: 1000}), 1000, 0.05) is None


def test_a_size_whose_memory_is_unknown_is_no_evidence():
    assert sizes_with_reserve(points({1: 100, 4: None}), 1000, 0.05) == {1}


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


MIB = 2**20


def watched(**changes: object) -> Watched:
    kept = {"batch_size": 16, "steps": 5, "step_seconds": 0.01, "is_varied": False, "is_rising": False}
    return Watched(**(kept | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("peaks", [[], [1], [5, 9, 9, 9, 9], [9, 9, 9, 9, 9], [5, 9, 9, 9, 9 + 1e-9]])
def test_a_training_that_only_makes_its_optimizers_state_is_still(peaks: list[int]) -> None:
    found = [round(MIB * each) for each in peaks]
    assert (is_rising(found), has_fallen(found)) == (False, False)


def test_the_last_half_has_to_be_still() -> None:
    assert is_rising([1, 2, 2, 2, 9])
    assert not is_rising([1, 2, 2, 9, 2, 2, 2, 2])


def test_growth_by_a_step_that_is_kept_is_rounding() -> None:
    assert not is_more(MIB + 64, MIB)
    assert not is_rising([MIB + 64 * step for step in range(5)])


@pytest.mark.parametrize(
    ("starts", "steps"),
    [
        ([watched()], 5),
        ([watched(), watched(is_varied=True)], 40),
        ([watched(is_varied=True, steps=100)], MOST_STEPS),
        ([watched(is_rising=True)], 20),
        ([watched(is_rising=True, steps=80)], MOST_STEPS),
        ([watched(is_varied=True, step_seconds=4.0)], 40),
    ],
)
def test_more_steps_are_watched_where_the_starts_before_were_not_still(starts: list[Watched], steps: int) -> None:
    assert steps_to_watch(5, 16, starts) == steps
    assert steps_to_watch(500, 16, starts) == 500


@pytest.mark.parametrize(("size", "seconds", "steps"), [(16, 4.0, 15), (8, 1.0, 30), (16, 40.0, 5), (16, 0.1, 40)])
def test_ranks_make_as_many_steps_as_should_take_a_minute(size: int, seconds: float, steps: int) -> None:
    starts = [watched(is_varied=True, step_seconds=seconds, batch_size=size)]
    assert steps_to_watch(5, 16, starts, has_ranks=True) == steps
