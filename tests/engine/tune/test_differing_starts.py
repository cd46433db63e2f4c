"""Where starts of one size are given other rows, and so take other memory, no limit is called exact."""

import re
from collections import defaultdict
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from engine.describe.boundary import certificate
from engine.describe.result import answer_of as headline_of
from engine.kinds import answered
from engine.results.result import Outcome, Probe, Purpose, Reason
from engine.search.boundary import boundary_cut_short
from engine.search.differing_starts import STARTS_WHERE_THEY_DIFFER, do_starts_differ, next_where_starts_differ
from engine.search.stillness import Watched
from engine.search.unguided import Found
from engine.tune.evidence import Ended
from engine.tune.next_size import Start
from engine.tune.next_start import SearchSoFar, next_start
from tests.engine.answers.answers import differing
from tests.engine.tune.starts import COMMAND, Noted, document_of, tuned
from tests.engine.tune.test_evidence import marks_of, reading, steps

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


@pytest.mark.parametrize(
    "claim", [{"certified": True, "note": None}, {"certified": True}, {"note": None}, {"largest_batch_size": 103}]
)
def test_a_document_cannot_hide_how_its_starts_differed(claim: dict[str, Any]) -> None:
    _, found = tuned_alone([97, 103, 100])
    document = document_of(found)
    boundary, given = (
        answered({**document, "boundary": document["boundary"] | claim})["boundary"],
        document["boundary"],
    )
    assert {**boundary, "note": None} == {**given, "note": None}
    assert given["note"].startswith(boundary["note"])


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
    document = document_of(found)
    boundary, given = (
        answered({**document, "boundary": document["boundary"] | claim})["boundary"],
        document["boundary"],
    )
    assert {**boundary, "note": None} == {**given, "note": None}
    assert given["note"].startswith(boundary["note"])


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
