"""Where starts of one size, or steps of one start, are given other rows and so take other memory, no limit is exact."""

import re
import time
from collections import defaultdict
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from engine.describe.boundary import certificate
from engine.describe.result import answer_of as headline_of
from engine.errors import CommandUntunable
from engine.facts.result import Boundary, Outcome, Probe, Purpose, Reason
from engine.questions.kinds import answered
from engine.search.boundary import boundary_cut_short
from engine.search.differing_starts import STARTS_WHERE_THEY_DIFFER, do_starts_differ, next_where_starts_differ
from engine.search.stillness import Watched
from engine.search.unguided import Found
from engine.trainings.script.judge.differences import check_memory_rises, refused_in_evaluation, refused_late
from engine.trainings.script.judge.evidence import Evidence
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.sizes.next_size import Start
from engine.trainings.script.sizes.next_start import SearchSoFar, next_start
from engine.trainings.script.start.launch import Watching
from tests.engine.questions.answers.answers import differing
from tests.engine.trainings.script.starts import COMMAND, SCRIPTS, Noted, document_of, started, tuned
from tests.engine.trainings.script.test_evidence import CARD, judged, marks_of, reading, said_of, steps
from tests.engine.trainings.script.test_replay import memory_of

LIMIT = 10_000
VARIED = Watched(100, 5, 1.0, is_varied=True, is_rising=False)
OUTCOMES = {True: Outcome.FITS, False: Outcome.OUT_OF_MEMORY}


def tuned_alone(percent: list[int], *, varied: bool = True) -> tuple[list[int], Any]:
    """Tune a training of about 100 bytes a sample; each of its starts takes the next share of that, in percent."""
    numbers = count()

    def start(batch_size: int) -> Noted:
        marks = marks_of(steps(batch_size))
        for length, mark in enumerate(mark for mark in marks if mark[1] == "forward"):
            mark[3] = [batch_size, 20 + length if varied else 20]
        peak = batch_size * percent[next(numbers) % len(percent)]
        return [reading([], marks=marks, peak=peak, python="3.11.7")], Ended(wall_seconds=10.0)

    return tuned(start, memory_limit_bytes=LIMIT)


def tuned_on_ranks(percent: list[int]) -> tuple[list[int], Any]:
    """Tune a training of two ranks, about 100 bytes a sample; each start of a size takes the next share of that."""
    numbers: dict[int, count[int]] = defaultdict(count)

    def start(batch_size: int) -> Noted:
        peaks = (90 * batch_size, batch_size * percent[next(numbers[batch_size]) % len(percent)])
        facts = {"world_size": 2, "has_group": True, "python": "3.11.7"}
        readings = [reading(steps(batch_size), peak=peak, rank=rank, **facts) for rank, peak in enumerate(peaks)]
        return readings, Ended(wall_seconds=10.0)

    return tuned(start, command=("torchrun", *COMMAND[1:]), memory_limit_bytes=LIMIT)


def test_a_training_that_three_starts_repeat_stays_certified_and_says_how_many() -> None:
    started, found = tuned_alone([100])
    boundary = found.result.boundary
    assert (boundary.largest_batch_size, boundary.certified, started.count(100)) == (100, True, 3)
    assert boundary.note.startswith("3 starts of 100 took 9.8 KiB each")
    assert certificate(found.result).startswith("Certified: 100 trained 5 steps in each of 3 fresh processes; 101 ran")
    assert differing(document_of(found)) == []


def test_a_training_with_rows_of_one_size_is_not_started_again() -> None:
    started, found = tuned_alone([100], varied=False)
    assert (found.is_certified, started.count(100)) == (True, 1)


@pytest.mark.parametrize("percent", [[97, 103, 100], [100, 99, 101, 98, 102], [101, 95, 98]])
def test_a_training_that_differs_from_start_to_start_gets_a_size_that_trained_in_all_of_four(percent) -> None:
    started, found = tuned_alone(percent)
    boundary = found.result.boundary
    size = boundary.largest_batch_size
    made = [p for p in found.result.probes if p.batch_size == size and p.purpose is not Purpose.CURVE]
    assert [p.outcome for p in made] == [Outcome.FITS] * STARTS_WHERE_THEY_DIFFER
    assert (boundary.certified, boundary.reason) == (False, Reason.OUT_OF_MEMORY)
    least, most = (f(p.peak_allocated_bytes for p in made) for f in (min, max))
    assert f"4 starts of {size} took" in boundary.note
    assert least < most <= LIMIT
    assert len(started) < 20
    assert differing(document_of(found)) == []
    assert headline_of(found.result).sentence.startswith(f"About {size} fit.")


def probe(size: int, peak: int | None, *, fits: bool = True) -> Probe:
    outcome = Outcome.FITS if fits else Outcome.OUT_OF_MEMORY
    return Probe(size, outcome, fresh_process=True, peak_allocated_bytes=peak)


def test_a_refusal_whose_memory_is_not_known_lowers_the_size_by_one() -> None:
    probes = [probe(50, 900), probe(51, None, fits=False), probe(50, None, fits=False)]
    assert do_starts_differ(probes)
    assert next_where_starts_differ(Found(50, 51), probes, 1_000) == 49


def test_a_batch_of_one_that_ran_out_in_one_of_its_starts_ends_the_search() -> None:
    probes = [probe(1, 900), probe(2, 1_500, fits=False), probe(1, 1_100, fits=False)]
    assert next_where_starts_differ(Found(1, 2), probes, 1_000) == Found(0, 1)


def hold_against(document: dict[str, Any], claim: dict[str, Any]) -> None:
    given, boundary = document["boundary"], answered({**document, "boundary": document["boundary"] | claim})["boundary"]
    assert {**boundary, "note": None} == {**given, "note": None}
    assert given["note"].startswith(boundary["note"])


@pytest.mark.parametrize(
    "claim", [{"certified": True, "note": None}, {"certified": True}, {"note": None}, {"largest_batch_size": 103}]
)
def test_a_document_cannot_hide_how_its_starts_differed(claim: dict[str, Any]) -> None:
    _, found = tuned_alone([97, 103, 100])
    hold_against(document_of(found), claim)


def test_the_limit_of_ranks_is_proved_by_three_starts_and_says_how_far_they_differed() -> None:
    started, found = tuned_on_ranks([100, 96, 94])
    boundary = found.result.boundary
    size = boundary.largest_batch_size
    assert (boundary.certified, boundary.refused_batch_size, started.count(size)) == (True, size + 1, 3)
    assert re.fullmatch(rf"3 starts of {size} took .* at most, .* more than the least", boundary.note)
    assert len(found.training.rank_peaks_bytes) == 2
    assert differing(document_of(found)) == []


def test_ranks_that_repeat_themselves_are_certified_and_the_note_says_so() -> None:
    _, found = tuned_on_ranks([100])
    assert (found.largest_batch_size, found.is_certified) == (100, True)
    assert found.result.boundary.note == "3 starts of 100 took 9.8 KiB each"


def test_a_size_that_ranks_could_not_train_in_one_of_its_starts_is_none_to_answer_with() -> None:
    started, found = tuned_on_ranks([100, 104, 96])
    boundary, searched = found.result.boundary, [p for p in found.result.probes if p.purpose is not Purpose.CURVE]
    trained = [p.outcome for p in searched if p.batch_size == boundary.largest_batch_size]
    assert (boundary.largest_batch_size, boundary.certified, trained) == (96, True, [Outcome.FITS] * 3)
    assert len(started) < 20
    assert Outcome.OUT_OF_MEMORY in {p.outcome for p in searched if p.batch_size == boundary.largest_batch_size + 1}
    assert differing(document_of(found)) == []


def test_the_size_to_recommend_keeps_free_what_the_starts_differed_by() -> None:
    _, found = tuned_on_ranks([100, 90, 95])
    result = found.result
    made = [p.peak_allocated_bytes for p in result.probes if p.batch_size == result.boundary.largest_batch_size]
    spread = max(made) - min(made)
    assert result.speed.reserve_fraction == spread / LIMIT > 0.05
    assert result.largest_with_reserve.memory_bytes <= LIMIT - spread


@pytest.mark.parametrize("claim", [{"note": None}, {"note": "3 starts of 100 took 9.8 KiB each"}])
def test_a_document_cannot_hide_how_its_ranks_differed(claim: dict[str, Any]) -> None:
    _, found = tuned_on_ranks([100, 96, 94])
    hold_against(document_of(found), claim)


@pytest.mark.parametrize("held", [1, 2])
def test_a_document_without_the_starts_of_its_ranks_has_no_certificate(held: int) -> None:
    _, found = tuned_on_ranks([100])
    document = document_of(found)
    again = [n for n, p in enumerate(document["probes"]) if p["batch_size"] == 100][held:]
    for name, part in (("probes", document), ("starts", document["training"])):
        part[name] = [each for n, each in enumerate(part[name]) if n not in again]
    document["timings"]["processes"] -= len(again)
    assert not answered(document)["boundary"]["certified"]


def test_three_starts_are_made_of_ranks_whose_batches_vary_too() -> None:
    starts = [Start(size, size < 101, 100 * size) for size in (1, 100, 101, 100)]
    probes = [Probe(s.batch_size, OUTCOMES[s.fits], Purpose.SEARCH, fresh_process=True) for s in starts]
    so_far = SearchSoFar(starts, probes, LIMIT, 1, 1_000, watched=[VARIED], has_ranks=True)
    assert next_start(so_far) == 100
    again = replace(so_far, starts=[*starts, starts[1]], probes=[*probes, probes[1]])
    assert next_start(again) == Found(100, 101)


def test_a_size_that_was_refused_in_another_start_is_no_answer_when_the_time_is_up() -> None:
    found = {size: Probe(size, Outcome.FITS, Purpose.SEARCH, fresh_process=True) for size in (8, 10)}
    refused = replace(found[10], outcome=Outcome.OUT_OF_MEMORY)
    assert boundary_cut_short([*found.values(), refused]).largest_batch_size == 8
    assert boundary_cut_short([*found.values(), replace(refused, fresh_process=False)]).largest_batch_size == 10


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
    assert said_of(found) == (
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
    assert said_of(found) == ""


def test_ranks_differ_beside_each_other_anyway() -> None:
    both = [took([500, 900, 700, 900, 900], rank=rank, world_size=2) for rank in (0, 1)]
    assert judged(both).watched.is_varied is False  # type: ignore[union-attr]


def test_a_late_step_that_takes_more_is_told() -> None:
    found = judged([took([500, 600, 600, 600, 900])])
    assert found.watched is not None
    assert found.watched.is_rising
    assert "of 5 steps that were watched a late one took more" in said_of(found)


def test_a_next_size_that_rose_in_a_late_step_only_is_told() -> None:
    watched = [Watched(30, 200, 0.1, is_varied=False, is_rising=False, rose_at=2)]
    watched.append(Watched(31, 200, 0.1, is_varied=False, is_rising=True, rose_at=194))
    boundary = Boundary(30, True, 31, Reason.OUT_OF_MEMORY)
    assert refused_late(watched, boundary) == (31, 194)
    assert refused_late(watched, replace(boundary, refused_batch_size=32)) is None


def test_a_size_refused_in_an_evaluation_certifies_none_that_has_not_come_to_it() -> None:
    boundary = Boundary(40, True, 41, Reason.OUT_OF_MEMORY)
    probes = [Probe(40, Outcome.FITS), Probe(41, Outcome.OUT_OF_MEMORY)]
    assert refused_in_evaluation(boundary, probes, {41}) == 41
    of_a_step = [probes[0], replace(probes[1], failed_phase="backward")]
    for other, evaluated in ((probes, {40, 41}), (probes, set()), (of_a_step, {41})):
        assert refused_in_evaluation(boundary, other, evaluated) is None


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
            mark += [peak := next(own, 10), peak, 0]
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
    assert said_of(of_rows) == f"{says}: --whole-run trains the longest"
    drawn_in_the_loop = given(sides, [[40, 3, 32, 32]] * 5)
    assert said_of(drawn_in_the_loop) == f"{says}: the largest alone, at every step, tells more"


def test_a_whole_run_that_looked_through_rows_of_many_sizes_explains_what_differs() -> None:
    data = {"looked": 9, "is_trained": True, "is_text": False, "largest": 9}
    seen = {"is_evaluation_cut": False, "data": [data | {"smallest": 3}]}
    frames = [[40, 20, length] for length in (24, 56, 32, 40, 24)]
    assert said_of(given(frames, whole_run=seen)) == ""
    seen["data"] = [data | {"smallest": 9}]
    assert "dimension 3" in said_of(given(frames, [[40, 20, 9]] * 5, whole_run=seen))


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
    assert said in said_of(found)


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
