"""That the steps of a training differ is seen by what they take, whatever they are given."""

import time
from dataclasses import replace
from typing import Any

import pytest

from engine.errors import CommandUntunable
from engine.results.result import Boundary, Outcome, Probe, Reason
from engine.search.stillness import Watched
from engine.tune.evidence import Evidence
from engine.tune.reading import Reading
from engine.tune.start.launch import Watching
from engine.tune.varied import check_memory_rises, describe_late_refusal, without_evaluation
from tests.engine.tune.starts import SCRIPTS, started
from tests.engine.tune.test_evidence import CARD, judged, marks_of, reading, steps
from tests.engine.tune.test_replay import memory_of

SCRIPT = SCRIPTS / "varies.py"
MOST_SECONDS = 300


def took(peaks: list[int], sizes: list[list[int]] | None = None, **changes: Any) -> Reading:
    """What is noted of a training whose steps took these bytes each."""
    marks = marks_of(sizes or steps(40)[: len(peaks)])
    events, each = [], iter(peaks)
    for number, mark in enumerate(marks):
        events.append([10 * number, number])
        if mark[1:3] == ["phase", "backward"] and (peak := next(each, 0)):
            events += [[10 * number + 1, 2, peak - 100, peak], [10 * number + 2, 2, 100 - peak, 100]]
    return reading([], marks=marks, events=events, **changes)


def test_steps_that_take_less_than_one_before_mark_a_training_as_varied() -> None:
    found = judged([took([500, 900, 700, 900, 900])])
    assert found.watched is not None
    assert (found.watched.is_varied, found.watched.is_rising, found.watched.steps) == (True, False, 5)
    assert found.caveat == (
        "the steps that were watched took 700 B to 900 B, although their inputs had the same shapes: "
        "a later one may take more"
    )


@pytest.mark.parametrize(
    ("peaks", "sizes"),
    [([500, 900, 900, 900, 900], None), ([900, 900, 400, 900, 900], [[40], [40], [20], [40], [40]])],
)
def test_the_optimizers_state_and_a_short_last_batch_are_no_variation(peaks: list[int], sizes: Any) -> None:
    found = judged([took(peaks, sizes)])
    assert found.watched is not None
    assert (found.watched.is_varied, found.watched.is_rising) == (False, False)
    assert found.caveat is None


def test_ranks_differ_beside_each_other_anyway() -> None:
    both = [took([500, 900, 700, 900, 900], rank=rank, world_size=2) for rank in (0, 1)]
    assert judged(both).watched.is_varied is False  # type: ignore[union-attr]


def test_a_late_step_that_takes_more_is_told() -> None:
    found = judged([took([500, 600, 600, 600, 900])])
    assert found.watched is not None
    assert found.watched.is_rising
    assert "of 5 steps that were watched a late one took more" in (found.caveat or "")


def test_a_next_size_that_rose_in_a_late_step_only_is_told() -> None:
    watched = [Watched(30, 200, 0.1, is_varied=False, is_rising=False, rose_at=2)]
    watched.append(Watched(31, 200, 0.1, is_varied=False, is_rising=True, rose_at=194))
    boundary = Boundary(30, True, 31, Reason.OUT_OF_MEMORY)
    assert (describe_late_refusal(watched, boundary) or "").startswith("31 ran out of memory in its step 194")
    assert describe_late_refusal(watched, replace(boundary, refused_batch_size=32)) is None


def test_a_size_refused_in_an_evaluation_certifies_none_that_has_not_come_to_it() -> None:
    boundary = Boundary(40, True, 41, Reason.OUT_OF_MEMORY)
    probes = [Probe(40, Outcome.FITS), Probe(41, Outcome.OUT_OF_MEMORY)]
    found = without_evaluation(boundary, probes, {41})
    assert (found.certified, found.largest_batch_size) == (False, 40)
    assert (found.note or "").startswith("41 ran out of memory in an evaluation, to which 40 had not come")
    of_a_step = [probes[0], replace(probes[1], failed_phase="backward")]
    for other, evaluated in ((probes, {40, 41}), (probes, set()), (of_a_step, {41})):
        assert without_evaluation(boundary, other, evaluated) == boundary


def test_what_runs_between_two_steps_counts_to_neither() -> None:
    marks = [[0, "phase", "forward", None], [0, "step", 1], [0, "phase", "forward", None], [0, "step", 1]]
    between, within = [[3, 5, 400], [4, 5, -400]], [[6, 7, 30], [7, 7, -30]]
    found = memory_of([[1, 0], [2, 1], *between, [5, 2], *within, [8, 3]], marks)
    assert (found.peak_bytes, found.step_peaks) == (500, {1: [100, 130]})


def test_a_step_of_two_optimizers_is_what_was_held_since_the_same_ones_step_before() -> None:
    marks = [[0, "step", each] for each in (1, 2, 1, 2)]
    events = [[1, 0], [2, 9, 50], [3, 9, -50], [4, 1], [5, 9, 10], [6, 9, -10], [7, 2], [8, 3]]
    assert memory_of(events, marks).step_peaks == {1: [100, 150], 2: [150, 110]}


def test_a_card_tells_the_peak_of_each_step_and_that_of_the_whole_has_its_phase() -> None:
    marks = marks_of(steps(40))
    own = iter([50, 90, 70, 90, 90])
    for mark in marks:
        if mark[1] == "step":
            mark += [peak := next(own, 10), peak]
    card = CARD | {"peak_allocated_bytes": 90}
    memory = reading([], marks=marks, card=card, device="cuda:0").memory()
    assert memory is not None
    assert memory.phase == "optimizer_step"
    found = judged([reading([], marks=marks, card=card, device="cuda:0")])
    assert found.watched is not None
    assert found.watched.is_varied


def given(shapes: list[list[int]], loaded: list[list[int]] | None = None, **changes: Any) -> Evidence:
    marks = marks_of([[40]] * len(shapes))
    each, drawn = iter(shapes), iter(loaded or shapes)
    for mark in marks:
        if mark[1] == "forward":
            mark += [[], False, [next(each)]]
        elif mark[1] == "batch":
            mark += [[], None, None, [next(drawn)]]
    return judged([reading([], marks=marks, **changes)])


def test_all_dimensions_are_looked_at_and_the_widest_is_named_with_what_helps() -> None:
    sides = [[40, 3, side, side] for side in (24, 56, 32, 40, 24)]
    of_rows = given(sides)
    assert of_rows.watched is not None
    assert of_rows.watched.is_varied
    says = "of the inputs that were watched dimension 3 and 4 was 24 to 56, and a larger one takes more memory"
    assert of_rows.caveat == f"{says}: --whole-run trains the longest"
    drawn_in_the_loop = given(sides, [[40, 3, 32, 32]] * 5)
    assert drawn_in_the_loop.caveat == f"{says}: the largest alone, at every step, tells more"


def test_a_whole_run_that_looked_through_rows_of_many_sizes_explains_what_differs() -> None:
    data = {"looked": 9, "is_trained": True, "is_text": False, "largest": 9}
    seen = {"is_evaluation_cut": False, "data": [data | {"smallest": 3}]}
    frames = [[40, 20, length] for length in (24, 56, 32, 40, 24)]
    assert given(frames, whole_run=seen).caveat is None
    seen["data"] = [data | {"smallest": 9}]
    assert "dimension 3" in (given(frames, [[40, 20, 9]] * 5, whole_run=seen).caveat or "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "said"),
    [("widths", "although their inputs had the same shapes"), ("sides", "dimension 3 was 8 to 48, and a larger")],
)
def test_drawn_widths_and_resized_images_are_seen(way: str, said: str) -> None:
    readings, ended = started(SCRIPT, 16, Watching(12, timed_steps=2), way)
    found = judged(readings, 16, ended=ended, limit_bytes=None)
    assert found.watched is not None
    assert found.watched.is_varied
    assert said in (found.caveat or "")


@pytest.mark.slow
def test_the_optimizers_of_one_client_after_the_other_are_counted_as_one() -> None:
    readings, ended = started(SCRIPT, 16, Watching(5, timed_steps=2), "clients")
    found = judged(readings, 16, ended=ended, limit_bytes=None)
    assert (found.probe.outcome, found.probe.steps) == (Outcome.FITS, 5)


@pytest.mark.slow
def test_a_loader_that_gives_no_batch_in_a_loop_that_goes_on_is_named_at_once() -> None:
    began = time.monotonic()
    readings, ended = started(SCRIPT, 65, Watching(5, timed_steps=2), "widths", seconds=MOST_SECONDS)
    assert time.monotonic() - began < MOST_SECONDS / 2
    found = judged(readings, 65, ended=ended, limit_bytes=None, honoured=[16])
    assert (found.probe.outcome, found.probe.error_message) == (
        Outcome.SIZE_LIMIT,
        "its DataLoader of 64 rows gave no batch in 8 passes",
    )


def test_a_smaller_batch_that_took_clearly_more_memory_is_no_answer() -> None:
    """As on a CPU with sharded parameters, where it hangs on when the ranks wait for each other."""
    check_memory_rises({16: 1_000, 32: 1_000, 64: 995, 128: 2_000})
    with pytest.raises(CommandUntunable) as refused:
        check_memory_rises({123: 6_359_028, 16: 7_216_440, 240: 10_479_024})
    assert refused.value.code == "memory_varies"
    assert "batch 16 took 6.9 MiB and batch 123 6.1 MiB" in str(refused.value)
    with pytest.raises(CommandUntunable):
        check_memory_rises({16: 1_000, 32: 1_000}, shows_size=True)
