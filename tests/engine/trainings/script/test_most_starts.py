"""A search ends, whatever the script does, and on memory curves of every kind few starts find the exact boundary."""

import json
import random
from collections import Counter
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.errors import CommandUntunable, WorkloadFailed
from engine.facts.result import Outcome, Purpose
from engine.search.unguided import Found
from engine.trainings.script import run
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.sizes.next_size import Start, next_size
from engine.trainings.script.sizes.next_start import MOST_STARTS
from engine.trainings.script.spec import TuneSpec
from tests.engine.questions.answers.answers import keeps_its_boundary
from tests.engine.synthetic_devices import KINDS, Device, make_device
from tests.engine.trainings.script.test_evidence import marks_of, reading, steps

TROUBLES = ("error", "names a size", "names sizes", "names numbers", "hangs", "exits", "ends by itself", "lacks rows")
PLACES = ("nowhere", "above", "not a multiple", "anywhere")


class MadeUp:
    """A training of 100 bytes a sample and 2,000 beside, with trouble at some sizes; nothing is executed.

    `percent`: what each of its starts takes of that, in turn.
    """

    def __init__(self, trouble: str, place: str, at: int, percent: list[int], seed: int, *, is_varied: bool) -> None:
        self.trouble, self.place, self.at, self.percent, self.seed = trouble, place, at, percent, seed
        self.is_varied = is_varied
        self.started: list[int] = []

    def is_in_trouble(self, size: int) -> bool:
        if self.place == "above":
            return size > self.at
        if self.place == "not a multiple":
            return size % (self.at % 12 + 1) != 0
        return self.place == "anywhere" and random.Random(f"{self.seed} {size}").random() < 0.5

    def __call__(self, _: object, size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
        self.started.append(size)
        if self.is_in_trouble(size):
            return self.end(size)
        marks = marks_of(steps(size))
        for length, mark in enumerate(mark for mark in marks if mark[1] == "forward"):
            mark[3] = [size, 20 + length if self.is_varied else 20]
        peak = 2_000 + size * self.percent[len(self.started) % len(self.percent)]
        return [reading([], marks=marks, peak=peak, python="3.11.7")], Ended(wall_seconds=10.0)

    def end(self, size: int) -> tuple[list[Reading], Ended]:
        draw = random.Random(f"{self.seed} {size} numbers")
        if self.trouble == "hangs":
            return [reading([], ended=None, python="3.11.7")], Ended(timed_out_after_seconds=120.0, wall_seconds=120.0)
        if self.trouble == "exits":
            return [], Ended(exit_status=3, last_lines=f"loss {draw.random()}", wall_seconds=1.0)
        if self.trouble == "ends by itself":
            return [reading([[size]], ended="exit", python="3.11.7")], Ended(exit_status=0, wall_seconds=1.0)
        if self.trouble == "lacks rows":
            return [reading([], ended="error", python="3.11.7", error_type="NoBatch", empty_passes=[8, 900])], Ended(
                exit_status=1
            )
        numbers = [draw.randrange(1, 4_000) for _ in range(30)]
        said = {
            "error": "no",
            "names a size": f"at most {numbers[0]}",
            "names sizes": "choose from 16, 24, 48, 96, 192",
        }
        message = said.get(self.trouble, f"shapes {numbers}")
        return [reading([], ended="error", python="3.11.7", error_type="ValueError", error_message=message)], Ended(
            exit_status=1
        )


made_up = st.builds(
    MadeUp,
    st.sampled_from(TROUBLES),
    st.sampled_from(PLACES),
    st.integers(8, 3_000),
    st.lists(st.integers(60, 140), min_size=1, max_size=5),
    st.integers(0, 9),
    is_varied=st.booleans(),
)
RULES = st.sampled_from([None, "multiple of 8", "power of two", "divisor of 480", "16, 24, 40, 768"])


@settings(max_examples=60, deadline=None)
@example(MadeUp("error", "anywhere", 8, [60], 1, is_varied=True), None, 100, 4)
@example(MadeUp("error", "anywhere", 8, [60, 112], 3, is_varied=True), "multiple of 8", 16, 4)
@given(made_up, RULES, st.sampled_from([1, 16, 100]), st.integers(3, 6))
def test_a_search_ends_after_its_most_starts_and_what_it_claims_is_shown(
    script: MadeUp, sizes: str | None, today: int, digits: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.trainings.script.speed.seats.start", script)
        limits: dict[str, Any] = {"memory_limit_bytes": 10**digits, "compare_speed": False, "sizes": sizes}
        try:
            found = run.tune(TuneSpec(("python", "train.py", "{batch_size}"), current_batch_size=today, **limits))
        except (CommandUntunable, WorkloadFailed):
            assert len(script.started) <= MOST_STARTS
            return
    searched = [p for p in found.result.probes if p.purpose is not Purpose.CURVE]
    assert len(searched) <= MOST_STARTS
    failed = Counter(p.batch_size for p in searched if p.outcome is Outcome.ERROR)
    assert max(failed.values(), default=0) <= 2, "a size that failed is started again for the same reason"
    if found.is_certified and found.largest_batch_size:
        of_largest = [p.outcome for p in searched if p.batch_size == found.largest_batch_size]
        assert {*of_largest} == {Outcome.FITS}
        assert len(of_largest) >= (3 if script.is_varied else 1)
    document = json.loads(json.dumps(found.to_dict()))
    assert keeps_its_boundary(document)


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


Curve = Callable[[int], tuple[int, ...]]


def starts_by_curves(curve: Curve, limit_bytes: int, resting_bytes: int = 11_000, **limits: int) -> list[Start]:
    """Search the whole way on a CPU, where each start shows what was held at each moment of a step."""
    starts: list[Start] = []
    following = {**LIMITS, **limits, "memory_bytes": limit_bytes, "measures_refused": True}
    while not isinstance(step := next_size(starts, **following), Found):
        peak = max(resting_bytes, *curve(step))
        starts.append(Start(step, peak <= limit_bytes, peak, resting_bytes, curve(step)))
    assert step.refused == step.largest + 1
    assert [s.fits for s in starts if s.batch_size in (step.largest, step.refused)] == [True, False]
    return starts


def bent(size: int) -> tuple[int, ...]:
    """The optimizer step holds the peak of small batches, the forward pass that of larger ones, the backward last."""
    return 9_000, 3_000 + 9 * size, 12_000, 2_000 + 14 * size, 5_000 + 3 * size


@pytest.mark.parametrize("limit_bytes", [16_000, 25_001, 100_000, 123_457])
def test_the_bends_of_a_peak_cost_no_start_where_each_value_of_a_step_is_known(limit_bytes: int) -> None:
    boundary = (limit_bytes - 2_000) // 14
    sizes = [s.batch_size for s in starts_by_curves(bent, limit_bytes)]
    assert sizes == [16, sizes[1], boundary, boundary + 1]


def test_a_first_size_that_is_refused_is_followed_down_by_curves() -> None:
    sizes = [s.batch_size for s in starts_by_curves(bent, 20_000, first=100_000)]
    assert (sizes[0], sizes[-2:], len(sizes)) == (100_000, [1_285, 1_286], 4)


def test_a_limit_far_beyond_the_first_size_is_not_jumped_to_at_once() -> None:
    sizes = [s.batch_size for s in starts_by_curves(lambda size: (1_000, 1_000 + size), 101_000, resting_bytes=1_000)]
    assert sizes == [16, 512, 16_384, 100_000, 100_001]


def test_curves_of_different_lengths_or_that_do_not_rise_tell_nothing() -> None:
    longer = [Start(16, True, 5_000, 4_000, (5_000,)), Start(32, True, 6_000, 4_000, (6_000, 1))]
    flat = [Start(16, True, 5_000, 4_000, (5_000,)), Start(32, True, 5_000, 4_000, (5_000,))]
    for starts in (longer, flat):
        without = [Start(s.batch_size, s.fits, s.memory_bytes, s.resting_bytes) for s in starts]
        limits = {**LIMITS, "memory_bytes": 100_000, "measures_refused": True}
        assert next_size(starts, **limits) == next_size(without, **limits)


def test_a_value_over_the_limit_that_no_smaller_batch_lowers_leads_to_batch_1() -> None:
    starts = [Start(16, False, 5_016, 4_000, (5_000, 16)), Start(8, False, 5_008, 4_000, (5_000, 8))]
    assert next_size(starts, memory_bytes=4_500, measures_refused=True, **LIMITS) == 1


@pytest.mark.parametrize("elsewhere", [lambda size: 20 * size, lambda size: 9_000 + 14 * size, lambda size: size**2])
def test_a_peak_that_lies_outside_the_curve_costs_starts_and_no_exactness(elsewhere: Callable[[int], int]) -> None:
    """As that of an evaluation, or of a longer batch: the curve aims too high, and is dropped once that is seen."""
    starts: list[Start] = []
    limits = {**LIMITS, "memory_bytes": 60_000, "measures_refused": True}
    while not isinstance(step := next_size(starts, **limits), Found):
        peak = max(*bent(step), elsewhere(step))
        starts.append(Start(step, peak <= 60_000, peak, 11_000, bent(step)))
    assert step.refused == step.largest + 1
    assert max(*bent(step.largest), elsewhere(step.largest)) <= 60_000
    assert len(starts) <= 8


@pytest.mark.parametrize("seed", range(20))
def test_curves_that_err_a_little_take_few_starts_to_the_exact_boundary(seed: int) -> None:
    """As where sizes of blocks are rounded up, or some values are of other moments."""

    def rough(size: int) -> tuple[int, ...]:
        noise = random.Random(f"{seed} {size}")
        return tuple(value + noise.randrange(300) for value in bent(size))

    def peak(size: int) -> int:
        return max(bent(size))

    starts: list[Start] = []
    limits = {**LIMITS, "memory_bytes": 60_000, "measures_refused": True}
    while not isinstance(step := next_size(starts, **limits), Found):
        starts.append(Start(step, peak(step) <= 60_000, peak(step), 11_000, rough(step)))
    assert step == Found(4_142, 4_143)
    assert len(starts) <= 10
