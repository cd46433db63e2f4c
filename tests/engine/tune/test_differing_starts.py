"""Where starts of one size are given other rows, and so take other memory, no limit is called exact."""

from itertools import count
from typing import Any

import pytest

from engine.describe.result import answer_of
from engine.kinds import find_contradictions
from engine.results.result import Outcome, Probe, Purpose, Reason
from engine.search.differing_starts import STARTS_WHERE_THEY_DIFFER, do_starts_differ, next_where_starts_differ
from engine.search.unguided import Found
from engine.tune import run
from engine.tune.evidence import Ended
from engine.tune.reading import Reading
from engine.tune.spec import TuneSpec
from tests.engine.tune.test_evidence import marks_of, reading, steps

LIMIT = 10_000


def tuned(monkeypatch: pytest.MonkeyPatch, *, percent: list[int], varied: bool = True) -> tuple[list[int], Any]:
    """Tune a training of about 100 bytes a sample; each of its starts takes the next share of that, in percent."""
    started: list[int] = []
    numbers = count()

    def start(_: object, batch_size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
        started.append(batch_size)
        marks = marks_of(steps(batch_size))
        for length, mark in enumerate(mark for mark in marks if mark[1] == "forward"):
            mark[3] = [batch_size, 20 + length if varied else 20]
        peak = batch_size * percent[next(numbers) % len(percent)]
        return [reading([], marks=marks, peak=peak, python="3.11.7")], Ended(wall_seconds=10.0)

    monkeypatch.setattr(run, "start", start)
    spec = TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=LIMIT, compare_speed=False)
    return started, run.tune(spec)


def document_of(found: run.TuneResult) -> dict[str, Any]:
    """Return the document as if its starts had taken their seconds."""
    document = found.to_dict()
    document["timings"]["total_seconds"] += 1_000.0
    return document


def test_a_training_that_each_start_repeats_is_started_once_more_and_stays_certified(monkeypatch) -> None:
    started, found = tuned(monkeypatch, percent=[100])
    boundary = found.result.boundary
    assert (boundary.largest_batch_size, boundary.certified, started.count(100)) == (100, True, 2)


def test_a_training_with_rows_of_one_size_is_not_started_again(monkeypatch) -> None:
    started, found = tuned(monkeypatch, percent=[100], varied=False)
    assert (found.is_certified, started.count(100)) == (True, 1)


@pytest.mark.parametrize("percent", [[97, 103, 100], [100, 99, 101, 98, 102], [101, 95, 98]])
def test_a_training_that_differs_from_start_to_start_gets_a_size_that_trained_in_all_of_four(
    monkeypatch, percent
) -> None:
    started, found = tuned(monkeypatch, percent=percent)
    boundary = found.result.boundary
    size = boundary.largest_batch_size
    made = [p for p in found.result.probes if p.batch_size == size and p.purpose is not Purpose.CURVE]
    assert [p.outcome for p in made] == [Outcome.FITS] * STARTS_WHERE_THEY_DIFFER
    assert (boundary.certified, boundary.reason) == (False, Reason.OUT_OF_MEMORY)
    least, most = (f(p.peak_allocated_bytes for p in made) for f in (min, max))
    assert f"4 starts of {size} took" in boundary.note
    assert least < most <= LIMIT
    assert len(started) < 20
    assert find_contradictions(document_of(found)) == []
    assert answer_of(found.result).sentence.startswith(f"About {size} fit.")


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
def test_a_document_that_hides_how_its_starts_differed_is_refused(monkeypatch, claim: dict[str, Any]) -> None:
    _, found = tuned(monkeypatch, percent=[97, 103, 100])
    document = document_of(found)
    document["boundary"] = document["boundary"] | claim
    assert {each.field.partition(".")[0] for each in find_contradictions(document)} >= {"boundary"}
