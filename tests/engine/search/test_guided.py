"""With an estimate the search finds the same boundary: sooner where it is right, hardly later where it is wrong."""

import math
import random
from collections.abc import Callable
from functools import partial
from statistics import mean, median

import pytest

from engine.search import unguided as plain
from engine.search.guided import ExpectedMemory, decide
from engine.search.unguided import Found, SearchLimits, Trial, Try
from tests.engine.synthetic_devices import KINDS, MIB, Device, make_device, search
from tests.engine.synthetic_estimates import WAYS, estimate

LINE = Device(lambda size: 1000 + 10 * size, lambda size: size <= 528, 1000 + 5285, 528)
SMOOTH = ("affine", "convex")
PER_KIND = 60


def guided(device: Device, expect: Callable[[int], int] | None, margin: float = 0.02, maximum: int = 2**20):
    expected = None if expect is None else ExpectedMemory(expect, margin)
    limits = SearchLimits(device.limit_bytes, maximum=maximum)
    return search(device, lambda trials: decide(trials, limits, expected))


def sizes(trials: list[Trial]) -> str:
    return " ".join(f"{t.batch_size}{'' if t.fits else 'x'}" for t in trials)


@pytest.fixture(scope="module")
def devices() -> dict[str, list[tuple[Device, int, list[Trial]]]]:
    """Devices with their boundary and the trials of the plain search."""
    rng = random.Random(20_261_121)
    made = {kind: [make_device(rng, kind) for _ in range(PER_KIND)] for kind in KINDS}
    return {kind: [(d, *largest_and_trials(guided(d, None))) for d in some] for kind, some in made.items()}


def largest_and_trials(outcome: tuple[Found, list[Trial]]) -> tuple[int, list[Trial]]:
    return outcome[0].largest, outcome[1]


def all_guided(devices, kind: str, factor: Callable[[], float]) -> list[list[Trial]]:
    """The trials with estimates wrong by such factors, in both ways; each answer is checked."""
    found = []
    for way in WAYS:
        for device, boundary, _ in devices[kind]:
            answer, trials = guided(device, estimate(device, boundary, factor(), way))
            assert answer.refused == answer.largest + 1
            assert device.boundary in (answer.largest, None)
            assert answer.largest == 0 or any(t.fits and t.batch_size == answer.largest for t in trials)
            assert any(not t.fits and t.fresh_process and t.batch_size == answer.refused for t in trials)
            found.append(trials)
    return found


def probes(searches: list[list[Trial]]) -> list[int]:
    return [len(trials) for trials in searches]


def refusals(searches: list[list[Trial]]) -> list[int]:
    return [sum(not t.fits for t in trials) for trials in searches]


@pytest.mark.parametrize(
    ("expect", "margin", "run"),
    [
        (lambda size: 1000 + 10 * size, 0.0, "1 528 529x"),
        (lambda size: 1000 + 10 * size, 0.02, "1 518 528 529x"),
        (lambda size: 1000 + 20 * size, 0.02, "1 259 527 528 529x"),
        (lambda size: 1000 + 5 * size, 0.02, "1 1035x 517 528 529x"),
        (None, 0.02, "1 16 128 528 529x"),
    ],
    ids=["exact and sure", "exact", "half", "twice", "none"],
)
def test_the_examples_of_the_module_are_what_happens(expect, margin, run):
    assert sizes(guided(LINE, expect, margin)[1]) == run


@pytest.mark.parametrize("kind", SMOOTH)
def test_an_estimate_within_two_percent_takes_a_median_of_four_probes_and_one_refusal(devices, kind):
    rng = random.Random(2)
    searches = all_guided(devices, kind, lambda: rng.uniform(0.98, 1.02))
    assert median(probes(searches)) <= 4
    assert median(refusals(searches)) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("within", [0.02, 0.08])
def test_a_fair_estimate_saves_a_probe_on_every_kind_of_curve_for_no_more_refusals(devices, kind, within):
    rng = random.Random(8)
    searches = all_guided(devices, kind, lambda: rng.uniform(1 - within, 1 + within))
    before = [trials for _, _, trials in devices[kind]]
    assert mean(probes(searches)) < mean(probes(before)) - 1
    assert mean(refusals(searches)) < mean(refusals(before)) + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_an_estimate_wrong_by_a_factor_of_two_costs_no_probe_and_at_most_a_refusal(devices, kind, factor):
    searches = all_guided(devices, kind, lambda: factor)
    before = [trials for _, _, trials in devices[kind]]
    assert median(probes(searches)) <= median(probes(before))
    assert mean(probes(searches)) <= mean(probes(before))
    assert mean(refusals(searches)) <= mean(refusals(before)) + (1 if factor > 1 else 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [0.1, 0.4, 0.9, 1.1, 2.5, 10.0])
def test_no_estimate_takes_the_search_past_its_bound_by_more_than_six(devices, kind, factor):
    for trials in all_guided(devices, kind, lambda: factor):
        largest = max((t.batch_size for t in trials if t.fits), default=1)
        assert len(trials) <= 4 + 2 * math.log2(largest) + 6, trials


def nonsense(noise: random.Random, limit_bytes: int, _: int) -> int:
    return round(limit_bytes * noise.uniform(0.1, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimate_that_is_nonsense_still_leads_to_the_boundary_within_the_bound(devices, kind):
    for number, (device, _, _) in enumerate(devices[kind]):
        noise = random.Random(number)
        answer, trials = guided(device, partial(nonsense, noise, device.limit_bytes))
        assert device.boundary in (answer.largest, None)
        assert len(trials) <= 4 + 2 * math.log2(max(answer.largest, 1)) + 10, trials


@pytest.mark.parametrize("boundary", range(70))
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_every_small_boundary_is_found_in_no_more_probes_than_the_plain_search_and_two(boundary, factor):
    limit = 1005 * MIB + 10 * MIB * boundary
    device = Device(lambda size: 1000 * MIB + 10 * MIB * size, lambda size: size <= boundary, limit, boundary)
    answer, trials = guided(device, lambda size: round(1000 * MIB + 10 * MIB * size / factor))
    assert answer == Found(boundary, boundary + 1)
    assert len(trials) <= len(guided(device, None)[1]) + 2


def test_what_the_memory_holds_beside_the_training_shifts_the_estimate_and_not_its_slope():
    assert sizes(guided(LINE, lambda size: 700 + 10 * size, 0.0)[1]) == "1 528 529x"


def test_sizes_that_fit_because_the_allocator_gives_back_its_cache_are_leapt_to():
    device = Device(lambda size: min(1000 + 10 * size, LINE.limit_bytes), lambda size: size <= 590, 1000 + 5285, 590)
    expected = ExpectedMemory(lambda size: 1000 + 10 * size, fits=lambda size, limit: 1000 + 10 * size <= limit * 1.099)
    _, trials = search(device, lambda so_far: decide(so_far, SearchLimits(device.limit_bytes), expected))
    assert sizes(trials).endswith("590 591x")
    assert len(trials) <= 5


def test_the_largest_size_allowed_is_leapt_to_and_not_past():
    assert guided(LINE, lambda size: 1000 + 10 * size, maximum=100)[0] == Found(100, None)
    assert sizes(guided(LINE, lambda size: 1000 + 10 * size, maximum=100)[1]) == "1 100"


def test_memory_that_nobody_could_read_leaves_the_plain_search():
    blind = partial(Trial, fits=True)
    assert decide([blind(1)], SearchLimits(1000), ExpectedMemory(lambda size: 10 * size)) == plain.decide(
        [blind(1)], SearchLimits(1000)
    )


def test_an_expected_boundary_below_the_start_is_leapt_to_first():
    device = Device(lambda size: 1000 + 10 * size, lambda size: size <= 9, 1095, 9)
    assert sizes(guided(device, lambda size: 1000 + 10 * size)[1]) == "1 9 10x"


def test_trials_of_an_attempt_without_an_estimate_are_taken_up():
    earlier = [Trial(1, True, 1010), Trial(16, True, 1160), Trial(128, True, 2280)]
    assert decide(earlier, SearchLimits(LINE.limit_bytes), ExpectedMemory(lambda size: 1000 + 10 * size)) == Try(528)
