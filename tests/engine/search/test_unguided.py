"""The search finds the exact boundary on every kind of memory curve, with few probes and fewer refusals."""

import math
import random
from statistics import median

import pytest

from engine.search.unguided import Found, SearchLimits, Trial, Try, curve_sizes, decide, next_soak_size
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
